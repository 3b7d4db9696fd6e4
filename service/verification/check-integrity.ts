import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import { constants as multikey } from '@digitalbazaar/multikey-context';
import * as jsigs from 'jsonld-signatures';
import { codeOf, messageOf } from '../base/errors';
import type { JsonObject } from '../issuance/credential';
import { PreparedContexts } from '../issuance/prepared-contexts';
import { unsignedContentIn } from '../issuance/signed-content';
import { findUnprotectedContent } from '../issuance/unprotected-content';
import { couldNotTell, invalid, valid, type Check } from './answer';
import { hasEnded, issuerOf, type IssuerKey } from './check-issuer';
import { checkTerms, type ContextSource } from './contexts';
import { deriveCredential, proofProblemOf, type ProofProblem } from './derive-credential';
import { createStrictVerifyCryptosuite } from './disclose';
import { presentedProof, type NamedContext } from './presented-credential';

/** Input of the integrity check. */
export interface IntegrityQuestion {
  credential: JsonObject;
  /** Found in the credential. */
  named: readonly NamedContext[];
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

/** The pointer of the whole document. */
const EVERYTHING = [''];

const KINDS = {
  base: 'a base proof, as the issuer issues it: the verified version was derived from it now',
  derived: 'a derived proof: the version that a holder chose to show',
};

/**
 * Checks whether the document is as it was signed: the proof, the meaning of its terms, unsigned content, and
 * the signature itself.
 *
 * @returns `shown`: the version that was verified; undefined if none could be.
 * @throws RequestError the errors of deriveCredential about pointers; CREDENTIAL_INVALID if it cannot be
 *   processed.
 */
export async function checkIntegrity(
  question: IntegrityQuestion,
): Promise<{ checks: Check[]; shown: JsonObject | undefined }> {
  const { credential, named, trustedContexts, contexts, now } = question;
  const proof = presentedProof(credential);
  if ('problem' in proof) {
    const failed = proof.kind === 'wrong' ? invalid : couldNotTell;
    return { checks: [failed('proof', `it ${proof.problem}`)], shown: undefined };
  }
  const terms = await checkTerms(named, contexts, issuerOf(credential), trustedContexts);
  // `expires` is signed with the proof (https://www.w3.org/TR/vc-data-integrity/#proofs), but the library does
  // not check it.
  const { expires } = proof.members;
  const kind = hasEnded(expires, now)
    ? invalid('proof', `it expired: ${JSON.stringify(expires)}`)
    : valid('proof', `ecdsa-sd-2023, ${KINDS[proof.kind]}`);
  if (contexts.problems().length > 0) {
    const unavailable = couldNotTell('contexts', contexts.problems().join('; '));
    const checks = [kind, terms, unavailable, notChecked('its contexts could not be loaded')];
    return { checks, shown: undefined };
  }
  const shown = await shownVersion(question, proof.kind);
  if (!('check' in shown)) {
    const signature = await checkSignature(shown.version, question);
    const protection = await checkProtection(shown.version, proof.members, question);
    return { checks: [kind, terms, protection, signature], shown: shown.version };
  }
  // The reason may be content that is not signed.
  const protection = await checkProtection(credential, proof.members, question);
  const found = protection.outcome === 'valid' ? [] : [protection];
  return { checks: [kind, terms, ...found, shown.check], shown: undefined };
}

/**
 * The version that a verifier is shown. A base proof cannot be verified, so a version is derived from it
 * here. A check is the reason why none can be derived.
 */
async function shownVersion(
  { credential, reveal, contexts }: IntegrityQuestion,
  kind: 'base' | 'derived',
): Promise<{ version: JsonObject } | { check: Check }> {
  if (kind === 'derived' && reveal === undefined) return { version: credential };
  try {
    return { version: await deriveCredential(credential, reveal ?? EVERYTHING, contexts.load) };
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code !== 'CONTENT_CHANGED' && code !== 'DERIVATION_FAILED') throw thrown;
    const isProven = code === 'CONTENT_CHANGED';
    return { check: failedSignature({ problem: messageOf(thrown), isProven }, contexts) };
  }
}

/**
 * Verifies the signatures of a derived version with a key that is known to be the issuer's. The library's own
 * check of the key's authorisation is not used.
 */
async function checkSignature(shown: JsonObject, { key, contexts }: IntegrityQuestion): Promise<Check> {
  if (key === undefined) return notChecked("the issuer's key could not be loaded");
  const { id, controller } = key;
  const document = { '@context': multikey.CONTEXT_URL, type: 'Multikey', ...key };
  const result = await jsigs.verify(shown, {
    suite: new DataIntegrityProof({ cryptosuite: createStrictVerifyCryptosuite() }),
    purpose: new jsigs.purposes.AssertionProofPurpose({
      controller: { id: controller, assertionMethod: [id] },
    }),
    documentLoader: async (url) =>
      url === id ? { contextUrl: null, document, documentUrl: url } : contexts.load(url),
  });
  if (result.verified) return valid('signature', `every statement verifies with ${id}`);
  return failedSignature(proofProblemOf(result.error), contexts);
}

/**
 * A context may import another one, which is fetched only during verification. The libraries do not report
 * its errors.
 */
function failedSignature({ problem, isProven }: ProofProblem, contexts: ContextSource): Check {
  const problems = contexts.problems();
  if (problems.length > 0) return notChecked(problems.join('; '));
  return isProven ? invalid('signature', problem) : notChecked(problem);
}

function notChecked(reason: string): Check {
  return couldNotTell('signature', `not checked: ${reason}`);
}

async function checkProtection(
  shown: JsonObject,
  proof: JsonObject,
  { contexts }: IntegrityQuestion,
): Promise<Check> {
  const check = 'covered by the signature';
  const options = { documentLoader: contexts.load, contextResolver: new PreparedContexts() };
  // The proof's members are read by name: an `expires` spelled as its IRI would be signed alike but not be
  // noticed.
  const document = { ...shown };
  delete document.proof;
  const parts = { '': document, '/proof': { ...proof, '@context': shown['@context'] } };
  try {
    for (const [at, part] of Object.entries(parts)) {
      const found = findUnprotectedContent(part, 'credential') ?? (await unsignedContentIn(part, options))[0];
      if (found) return couldNotTell(check, `${at}${found.pointer} ${found.statement}`);
    }
  } catch (thrown) {
    return couldNotTell(check, `not checked: ${proofProblemOf(thrown).problem}`);
  }
  const nothing = 'credentialSubject' in shown ? '' : '; it shows nothing of the subject';
  return valid(check, `a signature covers everything in the document but the order in lists${nothing}`);
}
