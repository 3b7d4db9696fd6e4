import { generate } from '@digitalbazaar/ecdsa-multikey';
import { didDocumentOf, type DidDocument } from '../../../cli/keys/did-key';
import type { DidKeyPair } from '../../../service/base/did-key-pair';
import {
  buildCredential,
  type JsonObject,
  type UnsignedCredential,
} from '../../../service/issuance/credential';
import { createDocumentLoader } from '../../../service/issuance/document-loader';
import { createCredentialSigner, type SignedCredential } from '../../../service/issuance/sign';

/** An issuer without a chain or a server: a key, its DID document, and the real signer. */
export interface TestIssuer {
  did: string;
  keyPair: DidKeyPair;
  didDocument: DidDocument;
  contextUrl: string;
  sign(subject?: JsonObject, changes?: Partial<UnsignedCredential>): Promise<SignedCredential>;
}

/** The token registry that credentials of these tests name. */
export const TEST_REGISTRY = '0x5FbDB2315678afecb367f032d93F642f64180aa3';

const SUBJECT = { type: ['BillOfLading'], scac: 'SGPU', blNumber: 'SGCNM21566325' };

/** Makes the key and the signer of `did:web:<domain>`. */
export async function createTestIssuer(domain = 'issuer.example'): Promise<TestIssuer> {
  const did = `did:web:${encodeURIComponent(domain)}`;
  const key = await generate({ id: `${did}#keys-1`, controller: did, curve: 'P-256' });
  const exported = await key.export({ publicKey: true, secretKey: true, includeContext: false });
  const keyPair = exported as DidKeyPair;
  const contextUrl = `https://${domain}/contexts/bill-of-lading-v1.json`;
  const sign = await createCredentialSigner(keyPair, createDocumentLoader(contextUrl));
  return {
    did,
    keyPair,
    didDocument: didDocumentOf(keyPair),
    contextUrl,
    sign: (subject = SUBJECT, changes = {}) => {
      const credential = buildCredential({
        id: 'urn:uuid:01937b4a-0000-7000-8000-000000000001',
        issuedAt: new Date('2026-01-01T00:00:00Z'),
        issuer: did,
        documentType: 'BILL_OF_LADING',
        documentContextUrl: contextUrl,
        rendererUrl: 'https://generic-templates.tradetrust.io',
        credentialSubject: subject,
        currency: 'ETH',
        chainId: 31337,
        tokenRegistry: TEST_REGISTRY,
      });
      return sign({ ...credential, ...changes }, new Date('2026-01-01T00:00:00Z'));
    },
  };
}
