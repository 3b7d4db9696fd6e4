import { messageOf } from '../base/errors';

/** CBOR values that a proof value may contain. */
type CborValue = number | string | Buffer | CborValue[] | Map<CborValue, CborValue>;

type IsOfForm = (value: CborValue) => boolean;
const isText: IsOfForm = (value) => typeof value === 'string';
const isBytes =
  (length: number): IsOfForm =>
  (value) =>
    Buffer.isBuffer(value) && value.length === length;
const isArrayOf =
  (isMember: IsOfForm): IsOfForm =>
  (value) =>
    Array.isArray(value) && value.every(isMember);
const isLabelMap: IsOfForm = (value) =>
  value instanceof Map && [...value.keys()].every(Number.isInteger) && [...value.values()].every(isBytes(32));

/**
 * The components of proof values, with their forms for messages. `publicKey`: a P-256 key as a Multikey: a
 * prefix of two bytes and the compressed point of 33. The standard's parseDerivedProofValue says 36 bytes,
 * but no such key has that length.
 */
const COMPONENTS: Readonly<Record<string, { form: string; isOfForm: IsOfForm }>> = {
  baseSignature: { form: '64 bytes', isOfForm: isBytes(64) },
  publicKey: { form: '35 bytes', isOfForm: isBytes(35) },
  hmacKey: { form: '32 bytes', isOfForm: isBytes(32) },
  signatures: { form: 'an array of 64 bytes each', isOfForm: isArrayOf(isBytes(64)) },
  labelMap: { form: 'a map of integers to 32 bytes each', isOfForm: isLabelMap },
  mandatoryPointers: { form: 'an array of texts', isOfForm: isArrayOf(isText) },
  mandatoryIndexes: { form: 'an array of integers', isOfForm: isArrayOf(Number.isInteger) },
};

/**
 * The two proofs of ecdsa-sd-2023: the issuer's, and that of a version that a holder shows. `header`: a tag
 * of CBOR, in hex.
 */
const PROOFS = [
  {
    kind: 'base',
    header: 'd95d00',
    names: ['baseSignature', 'publicKey', 'hmacKey', 'signatures', 'mandatoryPointers'],
  },
  {
    kind: 'derived',
    header: 'd95d01',
    names: ['baseSignature', 'publicKey', 'signatures', 'labelMap', 'mandatoryIndexes'],
  },
] as const;

const HEADER_LENGTH = 3;

/**
 * Reads a proof value as strictly as parseBaseProofValue and parseDerivedProofValue of
 * https://www.w3.org/TR/vc-di-ecdsa/#ecdsa-sd-2023-functions require. The library is laxer: it accepts
 * base64url with padding, spaces, `+` and `/`, ignores components after the fifth, and accepts label maps
 * that are arrays or have keys and values of any kind.
 *
 * @returns the kind of proof, and its problem as a clause, if any; undefined if it is not a proof value of
 *   ecdsa-sd-2023.
 */
export function readProofValue(
  proofValue: unknown,
): { kind: 'base' | 'derived'; problem: string | undefined } | undefined {
  if (typeof proofValue !== 'string' || !proofValue.startsWith('u')) return undefined;
  const text = proofValue.slice(1);
  const decoded = Buffer.from(text, 'base64url');
  const header = decoded.toString('hex', 0, HEADER_LENGTH);
  const proof = PROOFS.find((one) => one.header === header);
  if (proof === undefined) return undefined;
  const { kind, names } = proof;
  if (decoded.toString('base64url') !== text) return { kind, problem: 'is not base64url without padding' };
  return { kind, problem: problemOf(decoded.subarray(HEADER_LENGTH), names) };
}

function problemOf(payload: Buffer, names: readonly string[]): string | undefined {
  let values: CborValue;
  try {
    values = decodeCbor(payload);
  } catch (thrown) {
    return `is not the CBOR of a proof: ${messageOf(thrown)}`;
  }
  if (!Array.isArray(values)) return 'is not the CBOR of an array';
  if (values.length !== names.length) return `has ${values.length} components, not ${names.length}`;
  const wrong = names.find((name, index) => !COMPONENTS[name]?.isOfForm(values[index] as CborValue));
  return wrong && `has a component that is wrong: ${wrong} is not ${COMPONENTS[wrong]?.form}`;
}

const UNSIGNED = 0;
const NEGATIVE = 1;
const BYTES = 2;
const TEXT = 3;
const ARRAY = 4;
const MAP = 5;
const TAG = 6;

/** Tag of an array of octets (RFC 8746, section 2.1). Some libraries encode byte strings so. */
const OCTETS = 64;

/** Maximum depth: an array, in it an array or a map, in that a tag with its content. */
const DEEPEST = 4;

/** Ends an array or a map of indefinite length. */
const BREAK = 0xff;

/**
 * Decodes the subset of CBOR (RFC 8949) that proof values use: integers, byte strings, text, arrays and maps.
 *
 * @throws Error if there is any other item, or bytes follow the value.
 */
function decodeCbor(encoded: Buffer): CborValue {
  let position = 0;

  function take(length: number): Buffer {
    const taken = encoded.subarray(position, position + length);
    if (taken.length < length) throw new Error('it ends too early');
    position += length;
    return taken;
  }

  /** The type of the next item, and its value or length; undefined for an item of indefinite length. */
  function readHead(): { major: number; argument: number | undefined } {
    const initial = take(1).readUInt8();
    const major = initial >> 5;
    const short = initial & 0x1f;
    if (short < 24) return { major, argument: short };
    if (short === 31) return { major, argument: undefined };
    if (short > 27) throw new Error('an item in it has a reserved length');
    return { major, argument: Number(`0x${take(2 ** (short - 24)).toString('hex')}`) };
  }

  /** Whether another item follows after `count`. Consumes the break after the last, if there is one. */
  function hasNext(count: number, length: number | undefined): boolean {
    if (length !== undefined) return count < length;
    if (encoded[position] !== BREAK) return true;
    position += 1;
    return false;
  }

  function read(depth: number): CborValue {
    if (depth > DEEPEST) throw new Error('it is nested too deeply');
    const { major, argument } = readHead();
    if (major === ARRAY) {
      const values: CborValue[] = [];
      while (hasNext(values.length, argument)) values.push(read(depth + 1));
      return values;
    }
    if (major === MAP) {
      const map = new Map<CborValue, CborValue>();
      while (hasNext(map.size, argument)) {
        const key = read(depth + 1);
        if (map.has(key)) throw new Error('a map in it has a key twice');
        map.set(key, read(depth + 1));
      }
      return map;
    }
    if (argument === undefined) throw new Error('an item in it has no length');
    if (major === UNSIGNED) return argument;
    if (major === NEGATIVE) return -1 - argument;
    if (major === BYTES) return take(argument);
    if (major === TEXT) return take(argument).toString();
    if (major === TAG && argument === OCTETS) return read(depth + 1);
    throw new Error(`an item in it has the major type ${major}`);
  }

  const value = read(1);
  if (position < encoded.length) throw new Error('something follows it');
  return value;
}
