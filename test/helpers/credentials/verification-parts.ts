import type { JsonObject } from '../../../service/issuance/credential';
import { createDocumentLoader } from '../../../service/issuance/document-loader';
import type { Answer } from '../../../service/verification/answer';
import { deriveCredential } from '../../../service/verification/derive-credential';
import {
  verifyCredential,
  type Verification,
  type VerificationOptions,
  type VerificationSources,
} from '../../../service/verification/verify-credential';
import { fakeSources } from './fake-sources';
import { createTestIssuer, type TestIssuer } from './test-issuer';

/** Verifies with fake sources, some of them replaced by `changes`. */
export type Verify = (
  credential: unknown,
  changes?: Partial<VerificationSources>,
  options?: VerificationOptions,
) => Promise<Verification>;

/**
 * An issuer, its credential as issued and as derived with all values, and functions that derive and verify.
 */
export interface VerificationParts {
  issuer: TestIssuer;
  base: JsonObject;
  derived: JsonObject;
  derive: (credential: JsonObject, pointers: string[]) => Promise<JsonObject>;
  verify: Verify;
}

/** A domain that does not answer. */
export const NOBODY = {
  kind: 'unavailable',
  url: 'https://issuer.example/',
  problem: 'cannot be reached',
} as const;

/** Creates the parts with a new key. */
export async function prepareVerification(): Promise<VerificationParts> {
  const issuer = await createTestIssuer();
  const derive: VerificationParts['derive'] = (credential, pointers) =>
    deriveCredential(credential, pointers, createDocumentLoader(issuer.contextUrl));
  const base = { ...(await issuer.sign()) };
  return {
    issuer,
    base,
    derived: await derive(base, ['']),
    derive,
    verify: async (credential, changes = {}, options) =>
      verifyCredential(credential as JsonObject, fakeSources(issuer, changes), options),
  };
}

/** The outcomes of the three answers. */
export function outcomesOf({ documentIntegrity, issuerIdentity, documentStatus }: Verification): string[] {
  return [documentIntegrity, issuerIdentity, documentStatus].map(({ outcome }) => outcome);
}

/** The checks of an answer that are not valid, as one text. */
export function failuresOf({ checks }: Answer): string {
  return checks
    .flatMap(({ check, outcome, found }) => (outcome === 'valid' ? [] : [`${check}: ${found}`]))
    .join('; ');
}

/** The subject of a credential. */
export function subjectOf(credential: JsonObject): JsonObject {
  return credential.credentialSubject as JsonObject;
}
