import { expect } from 'chai';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { deriveCredential } from '../../service/verification/derive-credential';
import { verifyCredential } from '../../service/verification/verify-credential';
import { verify as verifyWithLibrary } from '../helpers/credentials/derive-and-verify';
import { fakeSources } from '../helpers/credentials/fake-sources';
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
  const refusal = async (pointers: string[], credential = base): Promise<Record<string, unknown>> =>
    derive(pointers, credential).then(
      () => ({ code: 'derived' }),
      (error: Record<string, unknown>) => error,
    );

  it('discloses the named members, the types of their objects, and mandatory members', async () => {
    const derived = await derive([
      '/credentialSubject/packages/1/packagesWeight',
      '/credentialSubject/blNumber',
    ]);
    expect(derived.credentialSubject).to.deep.equal({
      type: ['BillOfLading'],
      blNumber: 'SGCNM21566325',
      packages: [{ packagesWeight: '2 t' }],
    });
    expect(Object.keys(derived).sort()).to.deep.equal([
      '@context',
      'credentialStatus',
      'credentialSubject',
      'id',
      'issuer',
      'proof',
      'type',
      'validFrom',
      'validUntil',
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
    expect((await derive(['/credentialSubject', '/renderMethod'])).renderMethod).to.deep.equal(
      base.renderMethod,
    );
    expect((await derive([''])).renderMethod).to.deep.equal(base.renderMethod);
  });

  it('does not change its input', async () => {
    const [pointers, before] = [
      Object.freeze(['/credentialSubject/scac']) as string[],
      structuredClone(base),
    ];
    await derive(pointers);
    expect(base).to.deep.equal(before);
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

  it('refuses a credential that is derived, unsigned or signed with another cryptosuite', async () => {
    const derived = await derive(['/credentialSubject']);
    expect((await refusal(['/credentialSubject'], derived)).code).to.equal('CREDENTIAL_ALREADY_DERIVED');
    const unsigned = { ...base, proof: undefined };
    expect((await refusal(['/credentialSubject'], unsigned)).code).to.equal('PROOF_UNSUPPORTED');
    const other = { ...base, proof: { ...(base.proof as object), cryptosuite: 'bbs-2023' } };
    expect((await refusal(['/credentialSubject'], other)).message).to.contain('bbs-2023');
  });

  it('refuses a credential whose content does not match its proof', async () => {
    const other = { ...base, issuer: undefined };
    expect((await refusal(['/credentialSubject'], other)).code).to.equal('DERIVATION_FAILED');
  });
});
