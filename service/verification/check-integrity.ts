import { codeOf, messageOf } from '../base/errors';
import type { JsonObject } from '../issuance/credential';
import { findUnprotectedContent, type UnprotectedContent } from '../issuance/unprotected-content';
import type { Check } from './answer';
import { checkContexts } from './check-contexts';
import { issuerOf } from './check-issuer';
import type { ContextSource } from './context-source';
import { hasEnded } from './has-ended';
import { EVERYTHING, deriveCredential } from './derive-credential';
import type { Content } from './inspect-content';
import { presentedProof } from './presented-credential';
import { verifySignature, type IssuerKey } from './verify-signature';

/** Input of the integrity check. */
export interface IntegrityQuestion {
  credential: JsonObject;
  /** Found in the credential. */
  content: Content;
  /** Pointers that a base proof discloses. Undefined: everything. */
  reveal: readonly string[] | undefined;
  /** URLs of contexts that the user trusts. */
  trustedContexts: readonly string[];
  /** The issuer's key, if it could be found. */
  key: IssuerKey | undefined;
  contexts: ContextSource;
  /** Epoch milliseconds. */
  now: number;
}

/** Result of the check. `shown`: the version that was verified; undefined if none could be. */
export interface FoundIntegrity {
  checks: Check[];
  shown: JsonObject | undefined;
}

/**
 * Checks whether the document is as it was signed: the proof, the meaning of its terms, unsigned content, and
 * the signature itself.
 *
 * @throws RequestError the errors of deriveCredential about pointers; CREDENTIAL_INVALID if it cannot be
 *   processed.
 */
export async function checkIntegrity(question: IntegrityQuestion): Promise<FoundIntegrity> {
  const { credential, content, contexts } = question;
  const proof = presentedProof(credential);
  if (proof.kind === 'wrong' || proof.kind === 'unsupported') {
    const outcome = proof.kind === 'wrong' ? 'invalid' : 'could not tell';
    return { checks: [{ check: 'proof', outcome, found: `it ${proof.problem}` }], shown: undefined };
  }
  const terms = await checkTerms(question);
  const proofCheck = checkProof(proof.kind, proof.members, question.now);
  if (contexts.problems().length > 0) {
    const checks = [proofCheck, terms, unavailable(contexts), notChecked('its contexts could not be loaded')];
    return { checks, shown: undefined };
  }
  const { shown, problem } = await shownVersion(question, proof.kind);
  if (shown === undefined) return { checks: [proofCheck, terms, problem], shown };
  const signature = await checkSignature(shown, question);
  const protection = checkProtection(shown, proof.members, content);
  return { checks: [proofCheck, terms, protection, signature], shown };
}

const KINDS = {
  base: 'a base proof, as the issuer issues it: the verified version was derived from it now',
  derived: 'a derived proof: the version that a holder chose to show',
};

/**
 * `expires` is signed with the proof (https://www.w3.org/TR/vc-data-integrity/#proofs), but the library does
 * not check it.
 */
function checkProof(kind: 'base' | 'derived', { expires }: JsonObject, now: number): Check {
  if (!hasEnded(expires, now)) return valid('proof', `ecdsa-sd-2023, ${KINDS[kind]}`);
  return { check: 'proof', outcome: 'invalid', found: `it expired: ${JSON.stringify(expires)}` };
}

async function checkTerms({
  content,
  contexts,
  credential,
  trustedContexts,
}: IntegrityQuestion): Promise<Check> {
  const urls = [...new Set(content.contexts.flatMap(({ url }) => url ?? []))];
  const known = new Set<string>();
  for (const url of urls) if (await contexts.isKnown(url)) known.add(url);
  await Promise.allSettled(urls.map(contexts.load));
  const trust = { known, issuer: issuerOf(credential), trusted: trustedContexts, foundAt: contexts.foundAt };
  return checkContexts(content.contexts, trust);
}

/**
 * The version that a verifier is shown. A base proof cannot be verified, so a version is derived from it
 * here.
 */
async function shownVersion(
  { credential, reveal, contexts }: IntegrityQuestion,
  kind: 'base' | 'derived',
): Promise<{ shown: JsonObject; problem?: never } | { shown?: never; problem: Check }> {
  if (kind === 'derived' && reveal === undefined) return { shown: credential };
  try {
    return { shown: await deriveCredential(credential, reveal ?? [EVERYTHING], contexts.load) };
  } catch (thrown) {
    if (codeOf(thrown) !== 'DERIVATION_FAILED') throw thrown;
    return { problem: failedSignature(messageOf(thrown), contexts) };
  }
}

async function checkSignature(shown: JsonObject, { key, contexts }: IntegrityQuestion): Promise<Check> {
  if (key === undefined) return notChecked("the issuer's key could not be loaded");
  const problem = await verifySignature(shown, key, contexts.load);
  if (problem === undefined) return valid('signature', `every statement verifies with ${key.id}`);
  return failedSignature(problem, contexts);
}

/**
 * A context may import another one, which is fetched only during verification. The libraries do not report
 * its errors.
 */
function failedSignature(problem: string, contexts: ContextSource): Check {
  if (contexts.problems().length > 0) return notChecked(contexts.problems().join('; '));
  return { check: 'signature', outcome: 'invalid', found: problem };
}

function checkProtection(shown: JsonObject, proof: JsonObject, { passedOver }: Content): Check {
  const check = 'covered by the signature';
  const unprotected = findUnprotectedContent({ ...shown, proof: undefined }) ?? unprotectedInProof(proof);
  const outcome = 'could not tell';
  if (unprotected) return { check, outcome, found: `${unprotected.pointer} ${unprotected.problem}` };
  const [pointer] = passedOver;
  if (pointer !== undefined)
    return { check, outcome, found: `${pointer} is a name that no signature covers` };
  return valid(check, 'a signature covers everything in the document but the order in lists');
}

/**
 * The proof's members are read by name: an `expires` spelled as its IRI would be signed alike but not be
 * noticed.
 */
function unprotectedInProof(proof: JsonObject): UnprotectedContent | undefined {
  const members = Object.entries(proof).filter(([name]) => name !== '@context');
  const found = findUnprotectedContent(Object.fromEntries(members));
  return found && { ...found, pointer: `/proof${found.pointer}` };
}

function unavailable(contexts: ContextSource): Check {
  return { check: 'contexts', outcome: 'could not tell', found: contexts.problems().join('; ') };
}

function notChecked(reason: string): Check {
  return { check: 'signature', outcome: 'could not tell', found: `not checked: ${reason}` };
}

function valid(check: string, found: string): Check {
  return { check, outcome: 'valid', found };
}
