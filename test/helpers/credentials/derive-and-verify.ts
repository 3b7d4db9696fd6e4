import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import {
  createDiscloseCryptosuite,
  createVerifyCryptosuite,
  type Cryptosuite,
} from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import * as jsigs from 'jsonld-signatures';
import { createDocumentLoader } from '../../../service/issuance/document-loader';
import type { SignedCredential } from '../../../service/issuance/sign';

export interface DidDocument {
  id: string;
  verificationMethod: { id: string }[];
}

interface VerifyOptions {
  cryptosuite?: Cryptosuite;
  /** URL of the Bill of Lading context. Defaults to the last context of the credential. */
  contextUrl?: string;
  /** Loads the contexts in the place of those that the service knows. */
  documentLoader?: (url: string) => Promise<unknown>;
}

/** Derives a credential that discloses only the values at the pointers and the mandatory ones. */
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

/**
 * Verifies a derived credential like a verifier that has resolved the issuer's DID, by default with the
 * unchanged cryptosuite.
 */
export async function verify(
  derived: object,
  didDocument: DidDocument,
  options: VerifyOptions = {},
): Promise<jsigs.VerificationResult> {
  const { cryptosuite = createVerifyCryptosuite(), contextUrl } = options;
  const known = contextUrl ? createDocumentLoader(contextUrl) : contextsOf(derived as SignedCredential);
  const { documentLoader: contexts = known } = options;
  const documents = new Map<string, object>([[didDocument.id, didDocument]]);
  for (const method of didDocument.verificationMethod) {
    documents.set(method.id, { '@context': 'https://w3id.org/security/multikey/v1', ...method });
  }
  return jsigs.verify(derived, {
    suite: new DataIntegrityProof({ cryptosuite }),
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
