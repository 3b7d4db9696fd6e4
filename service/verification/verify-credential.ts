import type { Clock } from '../base/time';
import type { FetchedJson } from '../did/fetched-json';
import type { DidResolution } from '../did/resolve-did-web';
import type { JsonObject } from '../issuance/credential';
import type { DocumentLoader } from '../issuance/document-loader';
import type { TokenState } from '../registry/read-token-state';
import type { TokenLocation } from '../token/token-location';
import { answerOf, overall, type Answer, type Outcome } from './answer';
import { checkIntegrity } from './check-integrity';
import { checkIssuer, issuerOf } from './check-issuer';
import { checkStatus, type ReadToken } from './check-status';
import { createContextSource } from './contexts';
import { contextsOf, presentedProof } from './presented-credential';

/** Sources of the data that is not in the credential. */
export interface VerificationSources {
  /** Contexts that need not be fetched. */
  knownContexts: DocumentLoader;
  fetchJson(url: URL): Promise<FetchedJson>;
  resolveDid(did: string): Promise<DidResolution>;
  readToken: ReadToken;
  clock: Clock;
}

/** Options of a verification. */
export interface VerificationOptions {
  /** JSON pointers that are derived from a base proof. Undefined: everything. */
  reveal?: readonly string[] | undefined;
  /** URLs of contexts that the user trusts, though neither this project nor the issuer publishes them. */
  trustedContexts?: readonly string[] | undefined;
}

/** The three answers about a credential, and their subjects. */
export interface Verification {
  outcome: Outcome;
  documentIntegrity: Answer;
  issuerIdentity: Answer & { issuer: string | undefined; verificationMethod: string | undefined };
  /** `token`: undefined if it could not be read. */
  documentStatus: Answer & { token: (TokenLocation & TokenState) | undefined };
  /** URLs of contexts that had to be fetched. */
  contextsFetched: string[];
  /** The version that was verified. */
  shown: JsonObject | undefined;
}

/**
 * Verifies a credential: whether the document is as it was signed, who signed it, and the state of its token.
 * Problems of the credential are reported in the answers; problems of the arguments are thrown.
 *
 * @throws RequestError CREDENTIAL_INVALID if it cannot be processed at all; CREDENTIAL_ALREADY_DERIVED,
 *   POINTER_INVALID, POINTER_MATCHES_NOTHING about `reveal`.
 */
export async function verifyCredential(
  credential: JsonObject,
  sources: VerificationSources,
  { reveal, trustedContexts = [] }: VerificationOptions = {},
): Promise<Verification> {
  const named = contextsOf(credential);
  const { verificationMethod } = presentedProof(credential);
  const contexts = createContextSource(sources.knownContexts, (url) => sources.fetchJson(url));
  const now = sources.clock.now();
  const [issuer, status] = await Promise.all([
    checkIssuer(credential, verificationMethod, (did) => sources.resolveDid(did), now),
    checkStatus(credential, sources.readToken, now),
  ]);
  const question = { credential, named, reveal, trustedContexts, key: issuer.key, contexts, now };
  const integrity = await checkIntegrity(question);
  const answers = {
    documentIntegrity: answerOf(integrity.checks),
    issuerIdentity: { ...answerOf(issuer.checks), issuer: issuerOf(credential), verificationMethod },
    documentStatus: { ...answerOf(status.checks), token: status.token },
  };
  return {
    outcome: overall(Object.values(answers)),
    ...answers,
    contextsFetched: contexts.fetched(),
    shown: integrity.shown,
  };
}
