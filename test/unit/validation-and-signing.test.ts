import { expect } from 'chai';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentPreparer, type PrepareDocument } from '../../service/issuance/prepare-document';
import { validateBillOfLading } from '../../service/validation/validate-bill-of-lading';
import { HOLDER, OWNER, preparationOf, settingsOf } from '../helpers/credentials/preparations';
import { createTestIssuer } from '../helpers/credentials/test-issuer';

const SUBJECT = { type: ['BillOfLading'], scac: 'SGPU', blNumber: 'SG1', vessel: 'x', packages: [{}] };
const CHANGES: JsonObject[] = [
  {},
  { type: ['BillOfLading', 'Invoice'] },
  { type: [] },
  { id: 'urn:x:1' },
  { id: 'relative' },
  { name: 'Köln' },
  { links: { href: 'x' } },
  { links: 'PO_:1' },
  { links: '\ud800' },
  { links: 2 ** 70 },
  { vesel: 'x' },
  { '@context': 'https://other.example/context.json' },
  { packages: [{ packagesWeight: '1' }, { scac: 'x' }] },
  { packages: [{ packagesWeight: '1', packagesDescription: '提单' }] },
  { attachments: [{ data: 'AA==', filename: 'a', mimeType: 'b' }] },
  { attachments: [{ data: 'AA==', size: '1' }] },
  { vessel: '' },
];

describe('strict validation compared with signing', () => {
  let prepare: PrepareDocument;

  before(async () => {
    prepare = createDocumentPreparer(settingsOf(await createTestIssuer()));
  });

  /** Whether the create endpoint would sign it. */
  const isSigned = (credentialSubject: JsonObject): Promise<boolean> =>
    prepare(preparationOf(JSON.stringify({ credentialSubject, owner: OWNER, holder: HOLDER }))).then(
      () => true,
      () => false,
    );

  it('finds a problem in every subject that signing refuses', async () => {
    const seen = { valid: 0, refused: 0 };
    for (const changes of CHANGES) {
      const subject = { ...SUBJECT, ...changes };
      const isValid = (await validateBillOfLading(subject)).length === 0;
      const signed = await isSigned(subject);
      if (isValid) expect(signed, JSON.stringify(subject)).to.equal(true);
      seen.valid += Number(isValid);
      seen.refused += Number(!signed);
    }
    expect(seen.valid).to.be.greaterThan(3);
    expect(seen.refused).to.be.greaterThan(5);
  });
});
