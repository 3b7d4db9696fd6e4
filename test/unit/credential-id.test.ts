import * as EcdsaMultikey from '@digitalbazaar/ecdsa-multikey';
import { createSignCryptosuite } from '@digitalbazaar/ecdsa-sd-2023-cryptosuite';
import { DataIntegrityProof } from '@digitalbazaar/data-integrity';
import { expect } from 'chai';
import * as jsigs from 'jsonld-signatures';
import { credentialIdOf } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';

const UUID = '0192f3c8-5a00-7000-8000-000000000001';

describe('credential id', () => {
  async function sign(id: string): Promise<object> {
    const controller = 'did:web:example.com';
    const key = await EcdsaMultikey.generate({ id: `${controller}#keys-1`, controller, curve: 'P-256' });
    const credential = {
      '@context': ['https://www.w3.org/ns/credentials/v2'],
      id,
      type: ['VerifiableCredential'],
      issuer: controller,
      credentialSubject: { id: 'urn:x:subject' },
    };
    return jsigs.sign<object>(credential, {
      suite: new DataIntegrityProof({ signer: key.signer(), cryptosuite: createSignCryptosuite() }),
      purpose: new jsigs.purposes.AssertionProofPurpose(),
      documentLoader: createDocumentLoader('https://example.com/bill-of-lading-v1.json'),
    });
  }

  it('has a form that the cryptosuite signs', async () => {
    expect(await sign(credentialIdOf(UUID))).to.have.property('proof');
  });

  it('cannot begin with `urn:bnid:_:`, a blank node to the cryptosuite (docs/decisions/0002)', async () => {
    const failure = await sign(`urn:bnid:_:${UUID}`).then(String, (error: Error) => error.message);
    expect(failure).to.match(/N-Quads parse error/);
  });
});
