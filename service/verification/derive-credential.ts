import type { JsonLdEvent } from 'jsonld';
import { cut, messageOf, RequestError } from '../base/errors';
import { pointerStep, sharedPairs } from '../base/json';
import type { JsonObject } from '../issuance/credential';
import { PreparedContexts } from '../issuance/prepared-contexts';
import { tokensOf } from '../issuance/select-parts';
import { unsignedContentIn } from '../issuance/signed-content';
import { disclose, REPEATED_STATEMENT, type ContextLoader } from './disclose';
import { contextsOf, presentedProof } from './presented-credential';

/**
 * Derives the version of a credential that a holder shows
 * (https://www.w3.org/TR/vc-di-ecdsa/#add-derived-proof-ecdsa-sd-2023). It contains the pointers' targets,
 * everything the issuer made mandatory, and the `id` and `type` of every object on the way. The pointer ``
 * discloses everything.
 *
 * @throws RequestError CREDENTIAL_ALREADY_DERIVED, PROOF_UNSUPPORTED, POINTER_INVALID,
 *   POINTER_MATCHES_NOTHING; CONTENT_CHANGED if the proof does not belong to the content; DERIVATION_FAILED.
 */
export async function deriveCredential(
  credential: JsonObject,
  pointers: readonly string[],
  documentLoader: ContextLoader,
): Promise<JsonObject> {
  contextsOf(credential);
  const proof = presentedProof(credential);
  if (proof.kind === 'derived') {
    const remedy = 'Use the credential as the issuer issued it: only from that one can a version be derived.';
    const message = `This credential is already a derived version. ${remedy}`;
    throw new RequestError('CREDENTIAL_ALREADY_DERIVED', message, { remedy });
  }
  if ('problem' in proof) throw new RequestError('PROOF_UNSUPPORTED', `The credential ${proof.problem}.`);
  for (const pointer of pointers) checkPointer(credential, pointer);
  try {
    const [only] = [credential.proof].flat();
    return await disclose({ ...credential, proof: only }, pointers, documentLoader);
  } catch (cause) {
    if (cause instanceof RequestError) throw cause;
    const { problem, isProven } = proofProblemOf(cause);
    // Where a term loses content, the ids that disclose() adds are problems and statements of their own.
    const document = { ...credential };
    delete document.proof;
    const options = { documentLoader, contextResolver: new PreparedContexts() };
    const [unsigned] = await unsignedContentIn(document, options).catch(() => []);
    const reason = unsigned ? `${unsigned.pointer} ${unsigned.statement}` : problem;
    const message = `No version can be derived from the credential: ${reason}.`;
    const code = isProven && !unsigned ? 'CONTENT_CHANGED' : 'DERIVATION_FAILED';
    throw new RequestError(code, message, { cause });
  }
}

const MOST_SHOWN = 12;

/**
 * Checks a pointer (RFC 6901) that a holder wants to disclose: it must name a disclosable part of the
 * credential.
 *
 * @throws RequestError POINTER_INVALID, or POINTER_MATCHES_NOTHING with similar names.
 */
function checkPointer(document: object, pointer: string): void {
  if (pointer !== '' && !pointer.startsWith('/')) throw invalid(pointer, 'it must begin with "/"');
  if (/~(?![01])/.test(pointer)) throw invalid(pointer, '"~" must be written "~0", and "/" in a name "~1"');
  const tokens = tokensOf(pointer);
  if (tokens[0] === '@context' || tokens[0] === 'proof')
    throw invalid(pointer, 'the contexts and the proof are always there');
  let value: unknown = document;
  let parent = '';
  for (const name of tokens) {
    const members = membersOf(value);
    if (!members.has(name)) throw matchesNothing(pointer, parent, [...members.keys()], name);
    value = members.get(name);
    parent += pointerStep(name);
  }
  if (value === null) throw invalid(pointer, 'it is null, which is not signed');
}

/** Own members only. The members of an array are named by index. */
function membersOf(value: unknown): Map<string, unknown> {
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : []);
}

function matchesNothing(pointer: string, parent: string, names: string[], wanted: string): RequestError {
  const like = cut(wanted);
  const rated = names.map((name) => ({ name, distance: name.length - 2 * sharedPairs(name, like) }));
  const near = rated.sort((a, b) => a.distance - b.distance).slice(0, MOST_SHOWN);
  const more = names.length > near.length ? `, and ${names.length - near.length} more` : '';
  const remedy =
    near.length === 0
      ? `There is nothing inside "${parent}".`
      : `Its members: ${near.map(({ name }) => parent + pointerStep(name)).join(', ')}${more}.`;
  const message = `The pointer ${cut(pointer)} matches nothing in the credential. ${remedy}`;
  return new RequestError('POINTER_MATCHES_NOTHING', message, { remedy });
}

function invalid(pointer: string, problem: string): RequestError {
  const message = `The pointer "${cut(pointer)}" cannot be disclosed: ${problem}.`;
  return new RequestError('POINTER_INVALID', message);
}

/** A problem of a proof. `isProven`: the content is another one than was signed. */
export interface ProofProblem {
  problem: string;
  isProven: boolean;
}

/**
 * Describes the problem that the libraries found with a proof. jsonld-signatures collects errors; jsonld's
 * own carry an event.
 */
export function proofProblemOf(thrown: unknown): ProofProblem {
  const [first] = (thrown as { errors?: unknown[] } | undefined)?.errors ?? [thrown];
  const { details } = (first ?? {}) as { details?: { event?: JsonLdEvent; cause?: unknown } };
  if (details?.event) return safeModeProblemOf(details.event);
  if (details?.cause !== undefined) return { problem: messageOf(details.cause), isProven: false };
  const text = messageOf(first).replace(/\.$/, '');
  const problem = Object.entries(PROVEN).find(([beginning]) => text.startsWith(beginning))?.[1];
  return { problem: problem ?? text, isProven: problem !== undefined };
}

/** Problems that show that the content was changed, by the beginnings of the libraries' messages. */
const PROVEN: Readonly<Record<string, string>> = {
  'JSON pointer': 'a part that its issuer made mandatory is missing',
  'Signature count': 'something was added to it or left out of it after signing',
  'Invalid signature': 'it was changed after signing, or another key signed it',
  [REPEATED_STATEMENT]: REPEATED_STATEMENT,
};

/**
 * The problem of an event of jsonld's safe mode, which refuses content that would silently not be signed. The
 * standard (https://www.w3.org/TR/json-ld11-api/) has no such mode.
 */
function safeModeProblemOf({ code, message, details = {} }: JsonLdEvent): ProofProblem {
  const { property } = details;
  const isProven = code === 'invalid property' || code.startsWith('relative');
  if (typeof property === 'string')
    return { problem: `"${property}" is not defined by any of its contexts`, isProven };
  return { problem: `${message ?? code} is not covered by the signature`, isProven };
}
