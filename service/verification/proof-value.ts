import { messageOf } from '../base/errors';
import { decodeCbor, type CborValue } from './decode-cbor';

/** The two proofs of ecdsa-sd-2023: the issuer's, and that of a version that a holder shows. */
export type ProofKind = 'base' | 'derived';

/** The kind of a proof value, and its problem as a clause. Undefined if there is none. */
export interface ReadProofValue {
  kind: ProofKind;
  problem: string | undefined;
}

/** A component of a proof value. */
interface Component {
  name: string;
  /** The required form, for messages. */
  form: string;
  isOfForm: (value: CborValue) => boolean;
}

const HEADER_LENGTH = 3;

/** A tag of CBOR, in hex. */
const HEADERS = new Map<string, ProofKind>([
  ['d95d00', 'base'],
  ['d95d01', 'derived'],
]);

const isInteger = Number.isInteger;
const isText = (value: CborValue): boolean => typeof value === 'string';
const isBytes = (length: number) => (value: CborValue) => Buffer.isBuffer(value) && value.length === length;
const isArrayOf = (isOfForm: Component['isOfForm']) => (value: CborValue) =>
  Array.isArray(value) && value.every(isOfForm);
const isLabelMap = (value: CborValue): boolean =>
  value instanceof Map && [...value.keys()].every(isInteger) && [...value.values()].every(isBytes(32));

const baseSignature = { name: 'baseSignature', form: '64 bytes', isOfForm: isBytes(64) };
/**
 * A P-256 key as a Multikey: a prefix of two bytes and the compressed point of 33. The standard's
 * parseDerivedProofValue says 36 bytes, but no such key has that length.
 */
const publicKey = { name: 'publicKey', form: '35 bytes', isOfForm: isBytes(35) };
const hmacKey = { name: 'hmacKey', form: '32 bytes', isOfForm: isBytes(32) };
const signatures = {
  name: 'signatures',
  form: 'an array of 64 bytes each',
  isOfForm: isArrayOf(isBytes(64)),
};
const mandatoryPointers = {
  name: 'mandatoryPointers',
  form: 'an array of texts',
  isOfForm: isArrayOf(isText),
};
const labelMap = { name: 'labelMap', form: 'a map of integers to 32 bytes each', isOfForm: isLabelMap };
const mandatoryIndexes = {
  name: 'mandatoryIndexes',
  form: 'an array of integers',
  isOfForm: isArrayOf(isInteger),
};

const COMPONENTS: Record<ProofKind, readonly Component[]> = {
  base: [baseSignature, publicKey, hmacKey, signatures, mandatoryPointers],
  derived: [baseSignature, publicKey, signatures, labelMap, mandatoryIndexes],
};

/**
 * Reads a proof value as strictly as parseBaseProofValue and parseDerivedProofValue of
 * https://www.w3.org/TR/vc-di-ecdsa/#ecdsa-sd-2023-functions require. The library is laxer: it accepts
 * base64url with padding, spaces, `+` and `/`, ignores components after the fifth, and accepts label maps
 * that are arrays or have keys and values of any kind.
 *
 * @returns undefined if it is not a proof value of ecdsa-sd-2023.
 */
export function readProofValue(proofValue: unknown): ReadProofValue | undefined {
  if (typeof proofValue !== 'string' || !proofValue.startsWith('u')) return undefined;
  const text = proofValue.slice(1);
  const bytes = Buffer.from(text, 'base64url');
  const kind = HEADERS.get(bytes.toString('hex', 0, HEADER_LENGTH));
  if (kind === undefined) return undefined;
  if (bytes.toString('base64url') !== text) return { kind, problem: 'is not base64url without padding' };
  return { kind, problem: problemOf(bytes.subarray(HEADER_LENGTH), COMPONENTS[kind]) };
}

function problemOf(payload: Buffer, components: readonly Component[]): string | undefined {
  let values: CborValue;
  try {
    values = decodeCbor(payload);
  } catch (thrown) {
    return `is not the CBOR of a proof: ${messageOf(thrown)}`;
  }
  if (!Array.isArray(values)) return 'is not the CBOR of an array';
  if (values.length !== components.length) return `has ${values.length} components, not ${components.length}`;
  const wrong = components.find(({ isOfForm }, index) => !isOfForm(values[index] as CborValue));
  return wrong && `has a component that is wrong: ${wrong.name} is not ${wrong.form}`;
}
