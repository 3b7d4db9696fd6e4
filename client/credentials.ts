import { knownContexts, verificationSources } from '../cli/credentials/sources';
import { systemTime } from '../service/base/time';
import { createFetching } from '../service/did/fetch-json';
import type { JsonObject } from '../service/issuance/credential';
import { createContextSource } from '../service/verification/contexts';
import { deriveCredential as derive } from '../service/verification/derive-credential';
import { credentialIn } from '../service/verification/presented-credential';
import {
  verifyCredential as verify,
  type Verification,
  type VerificationOptions,
} from '../service/verification/verify-credential';

export type { Verification, VerificationOptions };

/**
 * Verifies a credential, or an answer of POST /create with one: whether the document is as it was signed, who
 * signed it, and the state of its token. It asks the issuer's host, a node of the token's network, and the
 * hosts of contexts that this package does not have. The settings RPC_URL and PROVIDER_API_KEY choose the
 * node.
 *
 * @throws Error with a `code` (docs/verification.md) if the credential or an option cannot be processed.
 */
export function verifyCredential(credential: unknown, options?: VerificationOptions): Promise<Verification> {
  return verify(credentialIn(credential), verificationSources(systemTime), options);
}

/**
 * Derives the version of a credential that a holder shows. It discloses the targets of the JSON pointers, and
 * what the issuer made mandatory. The pointer `''` discloses everything.
 *
 * @throws Error with a `code` (docs/verification.md), such as POINTER_MATCHES_NOTHING.
 */
export function deriveCredential(credential: unknown, pointers: readonly string[]): Promise<JsonObject> {
  const contexts = createContextSource(knownContexts(), createFetching(systemTime));
  return derive(credentialIn(credential), pointers, contexts.load);
}
