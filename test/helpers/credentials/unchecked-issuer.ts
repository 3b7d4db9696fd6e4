import { createVerifyCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { buildCredential, type UnsignedCredential } from '../../../service/issuance/credential';
import { createDocumentLoader } from '../../../service/issuance/document-loader';
import { PreparedContexts } from '../../../service/issuance/prepared-contexts';
import { unsignedContentIn } from '../../../service/issuance/signed-content';
import type { SignedCredential } from '../../../service/issuance/sign';
import { findUnprotectedContent } from '../../../service/issuance/unprotected-content';
import { createStrictVerifyCryptosuite } from '../../../service/verification/disclose';
import { verify } from './derive-and-verify';
import { createPlainSign } from './plain-signing';
import type { Members } from './random-subjects';
import { withoutProof } from './statements';
import { createTestIssuer, TEST_REGISTRY } from './test-issuer';

export const CONTEXT_URL = 'https://issuer.example/contexts/bill-of-lading-v1.json';
export const ISSUER = 'did:web:issuer.example';

/** An issuer that signs any credential, even with content that the signature does not protect. */
export interface UncheckedIssuer {
  sign(credential: object, created: Date): Promise<SignedCredential>;
  /**
   * Whether a verifier that knows the issuer's key accepts it, with the unchanged cryptosuite or strictly.
   */
  verifies(credential: object, strictly?: boolean): Promise<boolean>;
}

/** Makes an issuer with a new key. */
export async function createUncheckedIssuer(): Promise<UncheckedIssuer> {
  const { keyPair, didDocument } = await createTestIssuer();
  const sign = await createPlainSign(keyPair, createDocumentLoader(CONTEXT_URL));
  return {
    sign: async (credential, created) =>
      (await sign(structuredClone(credential), created.toISOString())) as SignedCredential,
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

/** The pointer of the first content of a credential that issuing refuses. Undefined: there is none. */
export async function unprotectedPointer(credential: object): Promise<string | undefined> {
  const found = findUnprotectedContent(credential, 'credential');
  if (found) return found.pointer;
  const document = withoutProof(credential as Members);
  const documentLoader = createDocumentLoader(CONTEXT_URL);
  const options = { documentLoader, contextResolver: new PreparedContexts() };
  return (await unsignedContentIn(document, options))[0]?.pointer;
}
