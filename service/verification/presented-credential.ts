import { cut, RequestError } from '../base/errors';
import { pointerStep } from '../base/json';
import { hasLongName, isJsonObject, LONGEST_NAME, type JsonObject } from '../issuance/credential';
import { readProofValue } from './proof-value';

/** Documents of other kinds: a version, or a type of them or of their proofs, what it is, and the remedy. */
const OTHERS: readonly [mark: RegExp, kind: string, remedy: string][] = [
  [
    /^https:\/\/schema\.openattestation\.com\/|^OpenAttestation\w+2018$|^SHA3MerkleProof$/,
    'an OpenAttestation document',
    'Verify it with software for OpenAttestation, such as the portal of TradeTrust.',
  ],
  [/^EnvelopedVerifiable/, 'in an envelope such as a JWT', 'Verify it with software for VC-JOSE-COSE.'],
  [/^VerifiablePresentation$/, 'a verifiable presentation', 'Give one of the credentials in it.'],
];

/**
 * Finds the document in a user's input: the input itself, or a member of an answer of POST /create or
 * /credentials/derive. `pointer` is that of the member.
 *
 * @throws RequestError CREDENTIAL_INVALID for a document of another kind, which it names.
 */
export function documentIn(input: unknown): { pointer: string; document: unknown } {
  const answer = isJsonObject(input) && !('type' in input) ? input : {};
  const member = ['signedW3CDocument', 'verifiableCredential'].find((name) => name in answer);
  const document = member === undefined ? input : answer[member];
  const { version, type, signature, proof }: JsonObject = isJsonObject(document) ? document : {};
  const names = [version, type, signature, proof].flat().map((one) => (isJsonObject(one) ? one.type : one));
  const other = OTHERS.find(([mark]) => names.some((name) => typeof name === 'string' && mark.test(name)));
  if (other) throw notACredential(`it is ${other[1]}`, other[2]);
  return { pointer: member === undefined ? '' : pointerStep(member), document };
}

/**
 * Finds the credential in a user's input.
 *
 * @throws RequestError CREDENTIAL_INVALID if there is none.
 */
export function credentialIn(input: unknown): JsonObject {
  const { document } = documentIn(input);
  if (!isJsonObject(document)) throw notACredential('it is not a JSON object');
  if (![document.type].flat().includes('VerifiableCredential'))
    throw notACredential('/type has no "VerifiableCredential"');
  return document;
}

const REMEDY = 'Give a signed credential, or the answer of POST /create or /credentials/derive.';

function notACredential(problem: string, remedy = REMEDY): RequestError {
  const message = `This is not a verifiable credential: ${problem}. ${remedy}`;
  return new RequestError('CREDENTIAL_INVALID', message, { remedy });
}

/** A context that a credential names, and where (JSON pointer, RFC 6901). */
export interface NamedContext {
  pointer: string;
  /** Undefined when the terms are defined in place instead of by a URL. */
  url: string | undefined;
}

/** Deeper than any document, and well below the depth at which the libraries overflow the stack. */
const DEEPEST = 100;

/** More than any credential names; each may have to be fetched. */
const MOST_CONTEXTS = 30;

/** Members whose values are names. */
const NAMES = new Set(['@context', '@id', '@type', 'id', 'type', 'issuer', 'verificationMethod']);

/**
 * Finds the contexts that a credential names, without recursion, because a stranger chose its depth.
 *
 * @throws RequestError CREDENTIAL_INVALID if it is nested too deeply, names too many contexts, or has a name
 *   that is too long.
 */
export function contextsOf(root: unknown): NamedContext[] {
  const contexts: NamedContext[] = [];
  const pending = [{ value: root, pointer: '', depth: 0 }];
  for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
    const { value, pointer, depth } = item;
    if (typeof value !== 'object' || value === null) continue;
    if (depth > DEEPEST) throw invalid(pointer, `is nested deeper than ${DEEPEST} levels`);
    for (const [key, child] of Object.entries(value) as [string, unknown][]) {
      const at = pointer + pointerStep(key);
      if (hasLongName(key) || (NAMES.has(key) && hasLongName(child)))
        throw invalid(at, `is a name of more than ${LONGEST_NAME} characters, so it cannot be checked`);
      if (key === '@context') contexts.push(...namedContexts(child, at));
      else pending.push({ value: child, pointer: at, depth: depth + 1 });
    }
  }
  if (contexts.length > MOST_CONTEXTS)
    throw new RequestError('CREDENTIAL_INVALID', `It names more than ${MOST_CONTEXTS} contexts.`);
  return contexts;
}

function invalid(pointer: string, problem: string): RequestError {
  return new RequestError('CREDENTIAL_INVALID', `${cut(pointer)} ${problem}.`);
}

function namedContexts(value: unknown, pointer: string): NamedContext[] {
  const entries: [unknown, string][] = Array.isArray(value)
    ? value.map((entry, index) => [entry, `${pointer}/${index}`])
    : [[value, pointer]];
  return entries.map(([entry, at]) => ({ pointer: at, url: typeof entry === 'string' ? entry : undefined }));
}

/**
 * The proof that a presented credential has:
 *
 * - `base`: the issuer's proof. A version to show is derived from it.
 * - `derived`: of a version to show. It can be verified, and nothing more can be removed.
 * - `unsupported`: other verifiers may support it.
 * - `wrong`: there is none, or no verifier accepts it.
 */
export type PresentedProof =
  | { kind: 'base' | 'derived'; verificationMethod: string; members: JsonObject }
  | { kind: 'unsupported' | 'wrong'; verificationMethod: string | undefined; problem: string };

/** Reads a credential's proof, without cryptography (https://www.w3.org/TR/vc-di-ecdsa/#ecdsa-sd-2023). */
export function presentedProof({ proof }: JsonObject): PresentedProof {
  const proofs: unknown[] = [proof].flat();
  const [only] = proofs;
  const verificationMethod = proofs.length === 1 ? methodOf(only) : undefined;
  const failed = (kind: 'unsupported' | 'wrong', problem: string): PresentedProof => {
    return { kind, verificationMethod, problem };
  };
  if (only === undefined) return failed('wrong', 'has no proof: nothing in it is signed');
  if (lacksPreviousProof(proofs))
    return failed('wrong', 'has a proof whose previousProof names no other of its proofs');
  if (proofs.length > 1) return failed('unsupported', `has ${proofs.length} proofs; only one is supported`);
  if (!isJsonObject(only)) return failed('wrong', 'has a proof that is not an object');
  const { type, cryptosuite, proofPurpose, proofValue } = only;
  if (type !== 'DataIntegrityProof' || cryptosuite !== 'ecdsa-sd-2023') {
    const named = [type, cryptosuite].filter((name) => typeof name === 'string').join(', ');
    const supported = 'only DataIntegrityProof with ecdsa-sd-2023 is supported';
    return failed('unsupported', `has a proof of another kind (${named || 'unnamed'}); ${supported}`);
  }
  if (verificationMethod === undefined)
    return failed('wrong', 'has a proof that names no verification method');
  if (proofPurpose !== 'assertionMethod')
    return failed('wrong', 'has a proof that was made for another purpose than assertionMethod');
  const value = readProofValue(proofValue);
  if (value === undefined)
    return failed('wrong', 'has a proofValue that is neither a base nor a derived proof');
  if (value.problem !== undefined) return failed('wrong', `has a proofValue that ${value.problem}`);
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
  const isOther = (id: unknown, proof: JsonObject): boolean => {
    return typeof id === 'string' && ![undefined, proof].includes(byId.get(id));
  };
  return objects.some((proof) => [proof.previousProof ?? []].flat().some((id) => !isOther(id, proof)));
}
