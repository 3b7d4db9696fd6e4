import { RequestError } from '../base/errors';
import { isJsonObject, type JsonObject } from '../issuance/credential';
import { readProofValue } from './proof-value';

/** The kind of proof that a presented credential has. */
export type PresentedProof =
  /** The issuer's proof. A version to show is derived from it. */
  | { kind: 'base'; verificationMethod: string; members: JsonObject }
  /** A version to show. It can be verified, and nothing more can be removed. */
  | { kind: 'derived'; verificationMethod: string; members: JsonObject }
  /** A proof that other verifiers may support. */
  | { kind: 'unsupported'; verificationMethod: string | undefined; problem: string }
  /** No proof, or one that no verifier accepts. */
  | { kind: 'wrong'; verificationMethod: string | undefined; problem: string };

/**
 * Finds the credential in a user's input: the credential itself, or the whole answer of POST /create.
 *
 * @throws RequestError CREDENTIAL_INVALID if it is neither.
 */
export function credentialIn(input: unknown): JsonObject {
  const answer = isJsonObject(input) && 'signedW3CDocument' in input ? input.signedW3CDocument : input;
  if (!isJsonObject(answer)) throw notACredential('it is not a JSON object');
  const types = [answer.type].flat();
  if (!types.includes('VerifiableCredential')) throw notACredential('/type has no "VerifiableCredential"');
  return answer;
}

/** Reads a credential's proof, without cryptography (https://www.w3.org/TR/vc-di-ecdsa/#ecdsa-sd-2023). */
export function presentedProof({ proof }: JsonObject): PresentedProof {
  const proofs: unknown[] = [proof].flat();
  const [only] = proofs;
  if (proof === undefined || proofs.length === 0) return wrong('has no proof: nothing in it is signed');
  const verificationMethod = proofs.length === 1 ? methodOf(only) : undefined;
  if (lacksPreviousProof(proofs))
    return wrong('has a proof whose previousProof names no other of its proofs', verificationMethod);
  if (proofs.length > 1) {
    const problem = `has ${proofs.length} proofs; only one is supported`;
    return { kind: 'unsupported', verificationMethod, problem };
  }
  if (!isJsonObject(only)) return wrong('has a proof that is not an object');
  const { type, cryptosuite, proofPurpose, proofValue } = only;
  if (type !== 'DataIntegrityProof' || cryptosuite !== 'ecdsa-sd-2023') {
    const named = [type, cryptosuite].filter((name) => typeof name === 'string').join(', ');
    const problem =
      `has a proof of another kind (${named || 'unnamed'}); ` +
      'only DataIntegrityProof with ecdsa-sd-2023 is supported';
    return { kind: 'unsupported', verificationMethod, problem };
  }
  if (verificationMethod === undefined) return wrong('has a proof that names no verification method');
  if (proofPurpose !== 'assertionMethod')
    return wrong('has a proof that was made for another purpose than assertionMethod', verificationMethod);
  const value = readProofValue(proofValue);
  if (value === undefined)
    return wrong('has a proofValue that is neither a base nor a derived proof', verificationMethod);
  if (value.problem !== undefined) return wrong(`has a proofValue that ${value.problem}`, verificationMethod);
  return { kind: value.kind, verificationMethod, members: only };
}

function methodOf(proof: unknown): string | undefined {
  return isJsonObject(proof) && typeof proof.verificationMethod === 'string'
    ? proof.verificationMethod
    : undefined;
}

/**
 * Whether a proof names a previous proof that the credential does not have
 * (https://www.w3.org/TR/vc-data-integrity/#verify-proof-sets-and-chains). A proof cannot be its own previous
 * proof, because it covers that one.
 */
function lacksPreviousProof(proofs: readonly unknown[]): boolean {
  const objects = proofs.filter(isJsonObject);
  const byId = new Map(objects.map((proof) => [proof.id, proof]));
  return objects.some((proof) =>
    [proof.previousProof ?? []].flat().some((id) => typeof id !== 'string' || !isOther(byId.get(id), proof)),
  );
}

function isOther(found: JsonObject | undefined, proof: JsonObject): boolean {
  return found !== undefined && found !== proof;
}

function wrong(problem: string, verificationMethod?: string): PresentedProof {
  return { kind: 'wrong', verificationMethod, problem };
}

function notACredential(problem: string): RequestError {
  const remedy = 'Give a signed credential, or the answer of POST /create.';
  return new RequestError('CREDENTIAL_INVALID', `This is not a verifiable credential: ${problem}.`, {
    remedy,
  });
}
