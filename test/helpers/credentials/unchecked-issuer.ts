import { createVerifyCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { buildCredential, type UnsignedCredential } from '../../../service/issuance/credential';
import { createDocumentLoader } from '../../../service/issuance/document-loader';
import { createCredentialSigner, type SignCredential } from '../../../service/issuance/sign';
import { createStrictVerifyCryptosuite } from '../../../service/verification/check-integrity';
import { verify } from './derive-and-verify';
import type { Members } from './random-subjects';
import { createTestIssuer, TEST_REGISTRY } from './test-issuer';

export const CONTEXT_URL = 'https://issuer.example/contexts/bill-of-lading-v1.json';
export const ISSUER = 'did:web:issuer.example';

/** An issuer that signs any credential, even with content that the signature does not protect. */
export interface UncheckedIssuer {
  sign: SignCredential;
  /**
   * Whether a verifier that knows the issuer's key accepts it, with the unchanged cryptosuite or strictly.
   */
  verifies(credential: object, strictly?: boolean): Promise<boolean>;
}

/** Makes an issuer with a new key. */
export async function createUncheckedIssuer(): Promise<UncheckedIssuer> {
  const { keyPair, didDocument } = await createTestIssuer();
  return {
    sign: await createCredentialSigner(keyPair, createDocumentLoader(CONTEXT_URL)),
    async verifies(credential, strictly = false) {
      const cryptosuite = strictly ? createStrictVerifyCryptosuite() : createVerifyCryptosuite();
      return (await verify(credential, didDocument, { cryptosuite, contextUrl: CONTEXT_URL })).verified;
    },
  };
}

/** A credential with this subject, which is not checked. */
export function credentialWith(credentialSubject: Members): UnsignedCredential {
  return buildCredential({
    id: 'urn:uuid:0192f3c8-5a00-7000-8000-000000000001',
    issuedAt: new Date('2026-01-31T00:00:00Z'),
    issuer: ISSUER,
    documentType: 'BILL_OF_LADING',
    documentContextUrl: CONTEXT_URL,
    rendererUrl: 'https://renderer.example',
    credentialSubject,
    currency: 'ETH',
    chainId: 31337,
    tokenRegistry: TEST_REGISTRY,
  });
}
