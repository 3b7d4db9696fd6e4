import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import { createVerifyCryptosuite, type VerifyCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { constants as multikey } from '@digitalbazaar/multikey-context';
import * as jsigs from 'jsonld-signatures';
import { codeOf, messageOf } from '../base/errors';
import type { JsonObject } from '../issuance/credential';
import { findUnprotectedContent } from '../issuance/unprotected-content';
import { couldNotTell, invalid, valid, type Check } from './answer';
import { hasEnded, issuerOf, type IssuerKey } from './check-issuer';
import { checkTerms, type ContextSource } from './contexts';
import { deriveCredential, proofProblemOf } from './derive-credential';
import type { Content, PresentedProof } from './presented-credential';

/** Input of the integrity check. */
export interface IntegrityQuestion {
  credential: JsonObject;
  /** Found in the credential, as is the proof. */
  content: Content;
  proof: PresentedProof;
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
  const { credential, content, proof, trustedContexts, contexts, now } = question;
  if ('problem' in proof) {
    const failed = proof.kind === 'wrong' ? invalid : couldNotTell;
    return { checks: [failed('proof', `it ${proof.problem}`)], shown: undefined };
  }
  const terms = await checkTerms(content.contexts, contexts, issuerOf(credential), trustedContexts);
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
  if (typeof shown === 'string')
    return { checks: [kind, terms, failedSignature(shown, contexts)], shown: undefined };
  const signature = await checkSignature(shown, question);
  return { checks: [kind, terms, checkProtection(shown, proof.members, content), signature], shown };
}

/**
 * The version that a verifier is shown. A base proof cannot be verified, so a version is derived from it
 * here. A text is the reason why none can be derived.
 */
async function shownVersion(
  { credential, reveal, contexts }: IntegrityQuestion,
  kind: 'base' | 'derived',
): Promise<JsonObject | string> {
  if (kind === 'derived' && reveal === undefined) return credential;
  try {
    return await deriveCredential(credential, reveal ?? EVERYTHING, contexts.load);
  } catch (thrown) {
    if (codeOf(thrown) === 'DERIVATION_FAILED') return messageOf(thrown);
    throw thrown;
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
 * The cryptosuite that verifies derived ecdsa-sd-2023 proofs, but refuses proofs that repeat a statement.
 *
 * Version 3.4.1 takes the labels of blank nodes from the unsigned part of the proof and does not check that
 * they differ. Two objects can be given the label of one that was signed, so that a package without an id
 * appears in the credential twice (docs/reports/ecdsa-sd-2023-duplicated-objects.md). Objects that refer to
 * it then make the same statement twice, which a set of RDF statements never contains.
 */
export function createStrictVerifyCryptosuite(): VerifyCryptosuite {
  const suite = createVerifyCryptosuite();
  return {
    ...suite,
    async createVerifyData(options) {
      const data = await suite.createVerifyData(options);
      if (new Set(data.nonMandatory).size === data.nonMandatory.length) return data;
      throw new Error(
        'The proof uses a signed statement more than once: an object was duplicated or divided.',
      );
    },
  };
}

/**
 * A context may import another one, which is fetched only during verification. The libraries do not report
 * its errors.
 */
function failedSignature(problem: string, contexts: ContextSource): Check {
  const problems = contexts.problems();
  return problems.length > 0 ? notChecked(problems.join('; ')) : invalid('signature', problem);
}

function notChecked(reason: string): Check {
  return couldNotTell('signature', `not checked: ${reason}`);
}

function checkProtection(shown: JsonObject, proof: JsonObject, { passedOver }: Content): Check {
  const check = 'covered by the signature';
  const inDocument = findUnprotectedContent({ ...shown, proof: undefined });
  if (inDocument) return couldNotTell(check, `${inDocument.pointer} ${inDocument.problem}`);
  // The proof's members are read by name: an `expires` spelled as its IRI would be signed alike but not be
  // noticed.
  const members = Object.entries(proof).filter(([name]) => name !== '@context');
  const inProof = findUnprotectedContent(Object.fromEntries(members));
  if (inProof) return couldNotTell(check, `/proof${inProof.pointer} ${inProof.problem}`);
  const [pointer] = passedOver;
  if (pointer !== undefined) return couldNotTell(check, `${pointer} is a name that no signature covers`);
  return valid(check, 'a signature covers everything in the document but the order in lists');
}
