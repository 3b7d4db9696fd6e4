import { RequestError } from '../errors';
import type { JsonObject } from '../issuance/credential';

/** What there is to say about the proof of a credential that was presented. */
export type PresentedProof =
  /** What the issuer gave out: a version to show is derived from it. */
  | { kind: 'base'; verificationMethod: string; members: JsonObject }
  /** A version to show: it can be verified, and nothing more can be left out. */
  | { kind: 'derived'; verificationMethod: string; members: JsonObject }
  /** A proof that others may be able to verify. */
  | { kind: 'unsupported'; verificationMethod: string | undefined; problem: string }
  /** No proof, or one that nobody could verify. */
  | { kind: 'wrong'; verificationMethod: string | undefined; problem: string };

/**
 * The credential in what a user gives: the credential itself, or the whole answer of POST /create.
 *
 * @throws RequestError CREDENTIAL_INVALID when it is neither.
 */
export function credentialIn(input: unknown): JsonObject {
  const answer = isObject(input) && 'signedW3CDocument' in input ? input.signedW3CDocument : input;
  if (!isObject(answer)) throw notACredential('it is not a JSON object');
  const types = [answer.type].flat();
  if (!types.includes('VerifiableCredential')) throw notACredential('/type has no "VerifiableCredential"');
  return answer;
}

/** Any JSON object; arrays and null are none. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Reads the proof of a credential as far as that needs no cryptography
 * (https://www.w3.org/TR/vc-di-ecdsa/#ecdsa-sd-2023).
 */
export function presentedProof({ proof }: JsonObject): PresentedProof {
  const proofs: unknown[] = [proof].flat();
  const [only] = proofs;
  if (proof === undefined || proofs.length === 0) return wrong('has no proof: nothing in it is signed');
  if (proofs.length > 1) {
    const problem = `has ${proofs.length} proofs; this verifies one`;
    return { kind: 'unsupported', verificationMethod: undefined, problem };
  }
  if (!isObject(only)) return wrong('has a proof that is no object');
  const { type, cryptosuite, proofPurpose, proofValue } = only;
  const verificationMethod =
    typeof only.verificationMethod === 'string' ? only.verificationMethod : undefined;
  if (type !== 'DataIntegrityProof' || cryptosuite !== 'ecdsa-sd-2023') {
    const named = [type, cryptosuite].filter((name) => typeof name === 'string').join(', ');
    const problem = `has a proof of another kind (${named || 'unnamed'}); this verifies DataIntegrityProof, ecdsa-sd-2023`;
    return { kind: 'unsupported', verificationMethod, problem };
  }
  if (verificationMethod === undefined) return wrong('has a proof that names no verification method');
  if (proofPurpose !== 'assertionMethod')
    return wrong('has a proof that was made for another purpose than assertionMethod', verificationMethod);
  const kind = PROOF_KINDS.get(headerOf(proofValue));
  return kind
    ? { kind, verificationMethod, members: only }
    : wrong('has a proofValue that is neither a base nor a derived proof', verificationMethod);
}

/**
 * The three bytes that both kinds of proof value begin with: a CBOR tag (vc-di-ecdsa, sections 3.5.2 and
 * 3.5.7).
 */
const PROOF_KINDS = new Map<string, 'base' | 'derived'>([
  ['d95d00', 'base'],
  ['d95d01', 'derived'],
]);

/** The header of a multibase base64url value, in hex. */
function headerOf(proofValue: unknown): string {
  if (typeof proofValue !== 'string' || !proofValue.startsWith('u')) return '';
  return Buffer.from(proofValue.slice(1, 5), 'base64url').toString('hex');
}

function wrong(problem: string, verificationMethod?: string): PresentedProof {
  return { kind: 'wrong', verificationMethod, problem };
}

function notACredential(problem: string): RequestError {
  const remedy = 'Give a signed credential, or the answer of POST /create.';
  return new RequestError('CREDENTIAL_INVALID', `This is no verifiable credential: ${problem}.`, { remedy });
}
