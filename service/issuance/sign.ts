import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import type { JsonLdEvent } from 'jsonld';
import * as jsigs from 'jsonld-signatures';
import { cut, RequestError, SignerError, SigningError, messageOf } from '../base/errors';
import type { IssuerKey } from '../config/key-settings';
import { openIssuerKey } from '../keys/issuer-key';
import type { UnsignedCredential } from './credential';
import type { DocumentLoader } from './document-loader';
import { createIssuingCryptosuite } from './issuing-cryptosuite';
import { PreparedContexts } from './prepared-contexts';
import { MOST_TOLD } from './signed-content';
import { undefinedContentIn } from './undefined-content';
import type { UnprotectedContent } from './unprotected-content';

/** The members of a proof that are texts of its own (docs/specification.md 3.7). */
type ProofText = 'created' | 'verificationMethod' | 'proofValue';

/**
 * A credential with its base proof, from which the holder derives verifiable versions with disclosed parts.
 */
export type SignedCredential = UnsignedCredential & { proof: Record<ProofText, string> };

/** Signs credentials with the issuer's key. */
export type SignCredential = (credential: UnsignedCredential, created: Date) => Promise<SignedCredential>;

/** The parts that selective disclosure cannot hide (docs/specification.md 3.8). */
export const MANDATORY_POINTERS = ['/issuer', '/validFrom', '/validUntil', '/credentialStatus'];

/**
 * Creates a signer for ecdsa-sd-2023 data integrity proofs
 * (https://www.w3.org/TR/vc-di-ecdsa/#ecdsa-sd-2023).
 *
 * @throws ConfigurationError when the key pair cannot be used.
 */
export async function createCredentialSigner(
  key: IssuerKey,
  documentLoader: DocumentLoader,
): Promise<SignCredential> {
  const open = await openIssuerKey(key);
  const cryptosuite = createIssuingCryptosuite(MANDATORY_POINTERS);
  return async (credential, created) => {
    try {
      const signer = await open();
      const suite = new DataIntegrityProof({ signer, date: created.toISOString(), cryptosuite });
      const purpose = new jsigs.purposes.AssertionProofPurpose();
      return await jsigs.sign<SignedCredential>(credential, { suite, purpose, documentLoader });
    } catch (cause) {
      const options = { documentLoader, contextResolver: new PreparedContexts() };
      const isUndefined = detailsOf(cause).event !== undefined;
      const search = isUndefined ? undefinedContentIn({ ...credential }, options) : Promise.resolve([]);
      throw signingFailed(cause, await search.catch(() => []));
    }
  };
}

/**
 * Converts an error of JSON-LD's safe mode, which refuses a term that no context defines: such a term would
 * not be signed. The contexts are known, so an error of syntax is one of the subject, such as a number as a
 * type.
 */
function signingFailed(
  cause: unknown,
  found: readonly UnprotectedContent[],
): SigningError | SignerError | RequestError {
  if (cause instanceof SignerError || cause instanceof RequestError) return cause;
  const { cause: ofLoader, event, value } = detailsOf(cause);
  if (ofLoader instanceof SigningError) return ofLoader;
  const isOfSyntax = cause instanceof Error && cause.name === 'jsonld.SyntaxError';
  if (event === undefined && !isOfSyntax) {
    return new SigningError('SIGNING_FAILED', `The credential could not be signed: ${messageOf(cause)}`, {
      cause,
    });
  }
  const problems = found.slice(0, MOST_TOLD).map(({ pointer, problem }) => `${cut(pointer)} ${problem}.`);
  const other = `${event?.message ?? messageOf(cause)} ${cut(JSON.stringify(event?.details ?? value) ?? '')}`;
  const remedy =
    'Use only terms that the contexts of the credential define, absolute ids, and a subject with a type.';
  return new SigningError('SUBJECT_TERM_UNDEFINED', problems.join(' ') || `/credentialSubject: ${other}`, {
    cause,
    remedy,
  });
}

/** jsonld's JsonLdError carries the event, the error of the document loader, or the value of wrong syntax. */
function detailsOf(thrown: unknown): { event?: JsonLdEvent; cause?: unknown; value?: unknown } {
  const isDetailed = thrown instanceof Error && 'details' in thrown;
  return (isDetailed ? (thrown.details as ReturnType<typeof detailsOf> | undefined) : undefined) ?? {};
}
