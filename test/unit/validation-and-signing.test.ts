import { generate } from '@digitalbazaar/ecdsa-multikey';
import { expect } from 'chai';
import type { DidKeyPair } from '../../service/base/did-key-pair';
import { parseCreateRequest } from '../../service/issuance/create-request';
import { buildCredential, type JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { createCredentialSigner, type SignCredential } from '../../service/issuance/sign';
import { validateBillOfLading } from '../../service/validation/validate-bill-of-lading';
import { seededRandom, type SeededRandom } from '../helpers/seeded-random';

const ACCOUNT = '0x70997970c51812dc3a010c7d01b50e0d17dc79c8';
const CONTEXT_URL = 'https://issuer.example/contexts/bill-of-lading-v1.json';
const DID = 'did:web:issuer.example';

/** A random subject with up to three changes, of which about half are valid. */
function subjectOf(random: SeededRandom): JsonObject {
  const subject: JsonObject = {
    type: ['BillOfLading'],
    scac: 'SGPU',
    blNumber: 'SG1',
    vessel: 'x',
    packages: [{}],
  };
  const odd: [string, unknown][] = [
    ['type', ['BillOfLading', 'Invoice']],
    ['type', []],
    ['id', 'urn:x:1'],
    ['id', 'relative'],
    ['name', 'Köln'],
    ['links', { href: 'x' }],
    ['links', 'PO_:1'],
    ['links', '\ud800'],
    ['links', 2 ** 70],
    ['vesel', 'x'],
    ['@context', 'https://other.example/context.json'],
    ['packages', [{ packagesWeight: '1' }, { scac: 'x' }]],
    ['packages', [{ packagesWeight: '1', packagesDescription: '提单' }]],
    ['attachments', [{ data: 'AA==', filename: 'a', mimeType: 'b' }]],
    ['attachments', [{ data: 'AA==', size: '1' }]],
    ['vessel', ''],
  ];
  const changes = Array.from({ length: random.below(4) }, () => random.pick(odd));
  return { ...subject, ...Object.fromEntries(changes) };
}

describe('strict validation compared with signing', () => {
  let sign: SignCredential;

  before(async () => {
    const pair = await generate({ id: `${DID}#keys-1`, controller: DID, curve: 'P-256' });
    const exported = await pair.export({ publicKey: true, secretKey: true, includeContext: true });
    sign = await createCredentialSigner(exported as DidKeyPair, createDocumentLoader(CONTEXT_URL));
  });

  /** Whether the create endpoint would sign it. */
  async function isSigned(subject: JsonObject): Promise<boolean> {
    try {
      const { credentialSubject } = parseCreateRequest({
        credentialSubject: subject,
        owner: ACCOUNT,
        holder: ACCOUNT,
      });
      const credential = buildCredential({
        id: 'urn:uuid:01890a5d-ac96-774b-bcce-b302099a8057',
        issuedAt: new Date(0),
        issuer: DID,
        documentType: 'BILL_OF_LADING',
        documentContextUrl: CONTEXT_URL,
        rendererUrl: 'https://renderer.example',
        credentialSubject,
        currency: 'ETH',
        chainId: 1,
        tokenRegistry: ACCOUNT,
      });
      await sign(credential, new Date(0));
      return true;
    } catch {
      return false;
    }
  }

  it('finds a problem in every subject that signing refuses', async () => {
    const random = seededRandom(11);
    const seen = { valid: 0, refused: 0 };
    for (let round = 0; round < 80; round++) {
      const subject = subjectOf(random);
      const isValid = (await validateBillOfLading(subject)).length === 0;
      const signed = await isSigned(subject);
      if (isValid) expect(signed, JSON.stringify(subject)).to.equal(true);
      seen.valid += Number(isValid);
      seen.refused += Number(!signed);
    }
    expect(seen.valid).to.be.greaterThan(15);
    expect(seen.refused).to.be.greaterThan(20);
  });
});
