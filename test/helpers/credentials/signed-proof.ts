import { from } from '@digitalbazaar/ecdsa-multikey';
import { createSignCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import * as jsigs from 'jsonld-signatures';
import type { JsonObject } from '../../../service/issuance/credential';
import { createDocumentLoader } from '../../../service/issuance/document-loader';
import { MANDATORY_POINTERS, type SignedCredential } from '../../../service/issuance/sign';
import { withoutProof } from './statements';
import type { TestIssuer } from './test-issuer';

/** A credential whose proof has these additional members and signs them. */
export async function signWithMembers(issuer: TestIssuer, members: JsonObject): Promise<SignedCredential> {
  const key = await from({ '@context': 'https://w3id.org/security/multikey/v1', ...issuer.keyPair });
  const cryptosuite = createSignCryptosuite({ mandatoryPointers: MANDATORY_POINTERS });
  const suite = new DataIntegrityProof({ signer: key.signer(), cryptosuite });
  return jsigs.sign<SignedCredential>(withoutProof(await issuer.sign()), {
    suite: Object.assign(suite, { proof: members }),
    purpose: new jsigs.purposes.AssertionProofPurpose(),
    documentLoader: createDocumentLoader(issuer.contextUrl),
  });
}
