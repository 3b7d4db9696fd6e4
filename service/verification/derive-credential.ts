import { createDiscloseCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import type { JsonLdEvent } from 'jsonld';
import * as jsigs from 'jsonld-signatures';
import { messageOf, RequestError } from '../base/errors';
import { pointerStep } from '../base/json';
import type { JsonObject } from '../issuance/credential';
import { inspectContent, presentedProof } from './presented-credential';

/** Loads the context of a URL, in the form that jsonld requires. */
export type ContextLoader = (url: string) => Promise<unknown>;

/**
 * Derives the version of a credential that a holder shows
 * (https://www.w3.org/TR/vc-di-ecdsa/#add-derived-proof-ecdsa-sd-2023). It contains the pointers' targets,
 * everything the issuer made mandatory, and the `id` and `type` of every object on the way. The pointer ``
 * discloses everything.
 *
 * @throws RequestError CREDENTIAL_ALREADY_DERIVED, PROOF_UNSUPPORTED, POINTER_INVALID,
 *   POINTER_MATCHES_NOTHING, or DERIVATION_FAILED if the proof does not belong to the content.
 */
export async function deriveCredential(
  credential: JsonObject,
  pointers: readonly string[],
  documentLoader: ContextLoader,
): Promise<JsonObject> {
  inspectContent(credential);
  const proof = presentedProof(credential);
  if (proof.kind === 'derived') {
    const remedy = 'Use the credential as the issuer issued it: only from that one can a version be derived.';
    const message = `This credential is already a derived version. ${remedy}`;
    throw new RequestError('CREDENTIAL_ALREADY_DERIVED', message, { remedy });
  }
  if ('problem' in proof) throw new RequestError('PROOF_UNSUPPORTED', `The credential ${proof.problem}.`);
  for (const pointer of pointers) checkPointer(credential, pointer);
  try {
    const cryptosuite = createDiscloseCryptosuite({ selectivePointers: [...pointers] });
    return await jsigs.derive<JsonObject>(credential, {
      suite: new DataIntegrityProof({ cryptosuite }),
      purpose: new jsigs.purposes.AssertionProofPurpose(),
      documentLoader,
    });
  } catch (cause) {
    const message = `No version can be derived from the credential: ${proofProblemOf(cause)}.`;
    throw new RequestError('DERIVATION_FAILED', message, { cause });
  }
}

const MOST_SHOWN = 12;

/**
 * Checks a pointer (RFC 6901) that a holder wants to disclose: it must name a disclosable part of the
 * credential.
 *
 * The cryptosuite does not check this. It finds inherited members (`/constructor`), reads "20ft" as the index
 * 20, and fails at null without naming the pointer.
 *
 * @throws RequestError POINTER_INVALID, or POINTER_MATCHES_NOTHING with similar names.
 */
function checkPointer(document: object, pointer: string): void {
  if (pointer !== '' && !pointer.startsWith('/')) throw invalid(pointer, 'it must begin with "/"');
  if (/~(?![01])/.test(pointer)) throw invalid(pointer, '"~" must be written "~0", and "/" in a name "~1"');
  const tokens = pointer.split('/').slice(1);
  if (tokens[0] === '@context' || tokens[0] === 'proof')
    throw invalid(pointer, 'the contexts and the proof are always there');
  let value: unknown = document;
  let parent = '';
  for (const token of tokens) {
    const name = token.replaceAll('~1', '/').replaceAll('~0', '~');
    const members = membersOf(value);
    if (!members.has(name)) throw matchesNothing(pointer, parent, [...members.keys()], token);
    if (!Array.isArray(value) && !Number.isNaN(parseInt(name, 10)))
      throw invalid(
        pointer,
        `a name that begins with a digit cannot be selected: disclose "${parent}" as a whole`,
      );
    value = members.get(name);
    parent = `${parent}/${token}`;
  }
  if (value === null) throw invalid(pointer, 'it is null, which is not signed');
}

/** Own members only. The members of an array are named by index. */
function membersOf(value: unknown): Map<string, unknown> {
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : []);
}

function matchesNothing(pointer: string, parent: string, names: string[], wanted: string): RequestError {
  const near = names.sort((a, b) => unlike(a, wanted) - unlike(b, wanted)).slice(0, MOST_SHOWN);
  const more = names.length > near.length ? `, and ${names.length - near.length} more` : '';
  const remedy =
    near.length === 0
      ? `There is nothing inside "${parent}".`
      : `Its members: ${near.map((name) => parent + pointerStep(name)).join(', ')}${more}.`;
  const message = `The pointer ${pointer} matches nothing in the credential. ${remedy}`;
  return new RequestError('POINTER_MATCHES_NOTHING', message, { remedy });
}

/** Distance between two names: the number of letter pairs that only one of them has. */
function unlike(a: string, b: string): number {
  const [of, other] = [pairsOf(a), pairsOf(b)];
  const common = [...of].filter((pair) => other.has(pair)).length;
  return of.size + other.size - 2 * common;
}

function pairsOf(name: string): Set<string> {
  const text = ` ${name.toLowerCase()}`;
  return new Set(Array.from({ length: text.length - 1 }, (_, index) => text.slice(index, index + 2)));
}

function invalid(pointer: string, problem: string): RequestError {
  return new RequestError('POINTER_INVALID', `The pointer "${pointer}" cannot be disclosed: ${problem}.`);
}

/**
 * Describes the problem that the libraries found with a proof. jsonld-signatures collects errors; jsonld's
 * own carry an event.
 */
export function proofProblemOf(thrown: unknown): string {
  const [first] = (thrown as { errors?: unknown[] } | undefined)?.errors ?? [thrown];
  const { details } = (first ?? {}) as { details?: { event?: JsonLdEvent; cause?: unknown } };
  if (details?.event) return safeModeProblemOf(details.event);
  if (details?.cause !== undefined) return messageOf(details.cause);
  const text = messageOf(first).replace(/\.$/, '');
  if (COUNTS_DIFFER.test(text)) return 'something was added to it or left out of it after signing';
  return text === 'Invalid signature' ? 'it was changed after signing, or another key signed it' : text;
}

const COUNTS_DIFFER = /^Signature count/;

/**
 * The problem of an event of jsonld's safe mode, which refuses content that would silently not be signed. The
 * standard (https://www.w3.org/TR/json-ld11-api/) has no such mode.
 */
function safeModeProblemOf({ code, message, details = {} }: JsonLdEvent): string {
  const { property } = details;
  if (typeof property === 'string') return `"${property}" is not defined by any of its contexts`;
  return `${message ?? code} is not covered by the signature`;
}
