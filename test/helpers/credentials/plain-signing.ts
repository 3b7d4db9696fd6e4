import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import * as EcdsaMultikey from '@digitalbazaar/ecdsa-multikey';
import { createSignCryptosuite, type Cryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import * as jsigs from 'jsonld-signatures';
import type { DidKeyPair } from '../../../service/base/did-key-pair';
import type { DocumentLoader } from '../../../service/issuance/document-loader';
import { MANDATORY_POINTERS } from '../../../service/issuance/sign';

/** Signs a credential as the READMEs of the libraries show, with their cryptosuite or another one. */
export type PlainSign = (credential: object, date: string, cryptosuite?: Cryptosuite) => Promise<object>;

/** Creates the function, with the issuer's key imported once. */
export async function createPlainSign(
  keyPair: DidKeyPair,
  documentLoader: DocumentLoader,
): Promise<PlainSign> {
  const key = await EcdsaMultikey.from({ '@context': 'https://w3id.org/security/multikey/v1', ...keyPair });
  return async (credential, date, cryptosuite) => {
    const suite = new DataIntegrityProof({
      signer: key.signer(),
      date,
      cryptosuite: cryptosuite ?? createSignCryptosuite({ mandatoryPointers: MANDATORY_POINTERS }),
    });
    const purpose = new jsigs.purposes.AssertionProofPurpose();
    return jsigs.sign<object>(credential, { suite, purpose, documentLoader });
  };
}
