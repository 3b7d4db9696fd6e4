import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import { createDiscloseCryptosuite, createVerifyCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import * as jsigs from 'jsonld-signatures';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import type { SignedCredential } from '../../service/issuance/sign';

interface DidDocument {
  id: string;
  verificationMethod: { id: string }[];
}

/** Derives a credential that discloses only what the pointers name, and what is mandatory. */
export async function derive(
  credential: SignedCredential,
  selectivePointers: string[],
): Promise<SignedCredential> {
  return jsigs.derive(credential, {
    suite: new DataIntegrityProof({ cryptosuite: createDiscloseCryptosuite({ selectivePointers }) }),
    purpose: new jsigs.purposes.AssertionProofPurpose(),
    documentLoader: contextsOf(credential),
  });
}

/** Verifies a derived credential as a verifier does who has resolved the issuer's DID. */
export async function verify(derived: object, didDocument: DidDocument): Promise<jsigs.VerificationResult> {
  const contexts = contextsOf(derived as SignedCredential);
  const documents = new Map<string, object>([[didDocument.id, didDocument]]);
  for (const method of didDocument.verificationMethod) {
    documents.set(method.id, { '@context': 'https://w3id.org/security/multikey/v1', ...method });
  }
  return jsigs.verify(derived, {
    suite: new DataIntegrityProof({ cryptosuite: createVerifyCryptosuite() }),
    purpose: new jsigs.purposes.AssertionProofPurpose(),
    documentLoader: async (url) => {
      const document = documents.get(url);
      return document ? { contextUrl: null, document, documentUrl: url } : contexts(url);
    },
  });
}

function contextsOf(credential: SignedCredential): (url: string) => Promise<unknown> {
  return createDocumentLoader(credential['@context'].at(-1) ?? '');
}
