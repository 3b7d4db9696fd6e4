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

/** Verifies with fake sources, of which some are others. */
export type Verify = (
  credential: unknown,
  changes?: Partial<VerificationSources>,
  options?: VerificationOptions,
) => Promise<Verification>;

/**
 * An issuer, a credential of theirs as they gave it out and as its holder shows all of it, and what derives
 * and verifies such.
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

/** Makes the parts, with a new key. */
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
