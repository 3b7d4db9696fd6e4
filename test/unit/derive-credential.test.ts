import { expect } from 'chai';
import type { ServiceError } from '../../service/base/errors';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { deriveCredential } from '../../service/verification/derive-credential';
import { verifyCredential } from '../../service/verification/verify-credential';
import { verify as verifyWithLibrary } from '../helpers/credentials/derive-and-verify';
import { fakeSources } from '../helpers/credentials/fake-sources';
import { errorOf } from '../helpers/error-of';
import { createTestIssuer, type TestIssuer } from '../helpers/credentials/test-issuer';

const SUBJECT = {
  type: ['BillOfLading'],
  scac: 'SGPU',
  blNumber: 'SGCNM21566325',
  vessel: 'Ever Given',
  packages: [
    { packagesDescription: 'tea', packagesWeight: '1 t' },
    { packagesDescription: 'rice', packagesWeight: '2 t' },
  ],
};

describe('deriving a credential', () => {
  let issuer: TestIssuer;
  let base: JsonObject;

  before(async () => {
    issuer = await createTestIssuer();
    base = { ...(await issuer.sign(SUBJECT)) };
  });

  const derive = async (pointers: string[], credential = base): Promise<JsonObject> =>
    deriveCredential(credential, pointers, createDocumentLoader(issuer.contextUrl));
  const refusal = (pointers: string[], credential = base): Promise<ServiceError> =>
    errorOf(derive(pointers, credential));

  it('discloses the named members, the types of their objects, and mandatory members', async () => {
    const before = structuredClone(base);
    const derived = await derive([
      '/credentialSubject/packages/1/packagesWeight',
      '/credentialSubject/blNumber',
    ]);
    expect(base, 'what was derived from').to.deep.equal(before);
    expect(derived.credentialSubject).to.deep.equal({
      type: ['BillOfLading'],
      blNumber: 'SGCNM21566325',
      packages: [{ packagesWeight: '2 t' }],
    });
    expect(derived).to.have.all.keys([
      ...['@context', 'credentialStatus', 'credentialSubject', 'id', 'issuer', 'proof', 'type'],
      ...['validFrom', 'validUntil'],
    ]);
    // The id decrypts the remark.
    expect(derived.id).to.equal(base.id);
    expect((await verifyWithLibrary(derived, issuer.didDocument)).verified).to.equal(true);
  });

  it('keeps mandatory members, and the result does not verify once one is removed', async () => {
    const derived = await derive(['/credentialSubject/scac']);
    for (const mandatory of ['issuer', 'validFrom', 'validUntil', 'credentialStatus']) {
      expect(derived).to.have.deep.property(mandatory, base[mandatory]);
      const without = { ...derived, [mandatory]: undefined };
      const { verified } = await verifyWithLibrary(structuredClone(without), issuer.didDocument);
      expect(verified, mandatory).to.equal(false);
      expect((await verifyCredential(without, fakeSources(issuer))).outcome, mandatory).not.to.equal('valid');
    }
  });

  it('leaves the renderer out unless a pointer covers it', async () => {
    expect(await derive(['/credentialSubject'])).not.to.have.property('renderMethod');
    for (const pointers of [['/credentialSubject', '/renderMethod'], ['']])
      expect((await derive(pointers)).renderMethod).to.deep.equal(base.renderMethod);
  });

  for (const [pointer, near] of [
    // The most similar member comes first.
    ['/credentialSubject/blnumber', 'Its members: /credentialSubject/blNumber,'],
    ['/credentialSubject/vesel', '/credentialSubject/vessel'],
    ['/credentialsubject/scac', '/credentialSubject'],
    ['/credentialSubject/packages/2', '/credentialSubject/packages/0'],
    ['/credentialSubject/packages/-', '/credentialSubject/packages/0'],
    ['/credentialSubject/packages/01', '/credentialSubject/packages/0'],
    ['/credentialSubject/scac/0', 'There is nothing inside "/credentialSubject/scac"'],
    ['/constructor', '/credentialSubject'],
    ['/credentialSubject/__proto__', '/credentialSubject/packages'],
    ['/', '/id'],
  ] as const) {
    it(`refuses ${pointer}, which matches nothing, and names what is near it`, async () => {
      const { code, message } = await refusal(['/credentialSubject/scac', pointer]);
      expect(code).to.equal('POINTER_MATCHES_NOTHING');
      expect(message).to.contain(`${pointer} matches nothing`).and.contain(near);
    });
  }

  it('refuses malformed pointers, and pointers to the proof or the contexts', async () => {
    for (const pointer of ['credentialSubject', '/a~2', '/proof', '/proof/created', '/@context/0'])
      expect((await refusal([pointer])).code, pointer).to.equal('POINTER_INVALID');
  });

  it('refuses pointers to null, and to a name that begins with a digit', async () => {
    const changed = { ...base, credentialSubject: { ...SUBJECT, '20ft': 'x', voyageNo: null } };
    for (const name of ['20ft', 'voyageNo'])
      expect((await refusal([`/credentialSubject/${name}`], changed)).code).to.equal('POINTER_INVALID');
  });

  it('refuses a credential that is derived, unsigned, changed or of another cryptosuite', async () => {
    for (const [credential, code] of [
      [await derive(['/credentialSubject']), 'CREDENTIAL_ALREADY_DERIVED'],
      [{ ...base, proof: undefined }, 'PROOF_UNSUPPORTED'],
      [{ ...base, issuer: undefined }, 'DERIVATION_FAILED'],
    ] as const)
      expect(await refusal(['/credentialSubject'], credential)).to.include({ code });
    const other = { ...base, proof: { ...(base.proof as object), cryptosuite: 'bbs-2023' } };
    expect((await refusal(['/credentialSubject'], other)).message).to.contain('bbs-2023');
  });
});
