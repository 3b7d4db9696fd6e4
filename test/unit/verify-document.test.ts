import { expect } from 'chai';
import type { JsonObject } from '../../service/issuance/credential';
import type { SignedCredential } from '../../service/issuance/sign';
import { forgeProof } from '../helpers/credentials/forged-proof';
import { type TestIssuer } from '../helpers/credentials/test-issuer';
import {
  failuresOf,
  outcomesOf,
  prepareVerification,
  subjectOf,
  type VerificationParts,
  type Verify,
} from '../helpers/credentials/verification-parts';

describe('a verified document', () => {
  let issuer: TestIssuer;
  let base: JsonObject;
  let derived: JsonObject;
  let derive: VerificationParts['derive'];
  let verify: Verify;

  before(async () => {
    ({ issuer, base, derived, derive, verify } = await prepareVerification());
  });

  const withSubject = (changes: JsonObject): JsonObject => ({
    ...derived,
    credentialSubject: { ...subjectOf(derived), ...changes },
  });

  it('is valid as issued, and as derived by the holder', async () => {
    for (const credential of [base, derived]) {
      const verification = await verify(credential);
      expect(outcomesOf(verification)).to.deep.equal(['valid', 'valid', 'valid']);
      expect(verification.outcome).to.equal('valid');
      expect(subjectOf(verification.shown ?? {})).to.deep.equal(subjectOf(base));
    }
  });

  it('shows only revealed and mandatory members', async () => {
    const { shown, outcome } = await verify(base, {}, { reveal: ['/credentialSubject/blNumber'] });
    expect(outcome).to.equal('valid');
    expect(subjectOf(shown ?? {})).to.deep.equal({ type: ['BillOfLading'], blNumber: 'SGCNM21566325' });
    expect(shown).to.include.keys('issuer', 'validFrom', 'validUntil', 'credentialStatus', 'id', 'type');
  });

  it('is valid if it shows nothing of the subject, and says so', async () => {
    for (const [credential, reveal] of [
      [base, ['/issuer']],
      [await derive(base, ['/issuer']), undefined],
    ] as const) {
      const { shown, outcome, documentIntegrity } = await verify(credential, {}, { reveal });
      expect(outcome).to.equal('valid');
      expect(shown).not.to.have.property('credentialSubject');
      const [covered] = documentIntegrity.checks.filter(({ check }) => check === 'covered by the signature');
      expect(covered?.found).to.match(/; it shows nothing of the subject$/);
    }
    const renderMethod = [{ id: issuer.did, type: 'EMBEDDED_RENDERER', templateName: 'x' }];
    const namesake = await issuer.sign(undefined, { renderMethod } as never).catch((error: Error) => error);
    expect(namesake).to.be.an('error').with.property('code', 'TEXT_NOT_PROTECTED');
  });

  /** Changes of a credential; undefined removes a member. */
  const changes: ((credential: JsonObject) => JsonObject)[] = [
    (it) => ({ credentialSubject: { ...subjectOf(it), scac: 'XXXX' } }),
    (it) => ({ credentialSubject: { ...subjectOf(it), vessel: 'Ever Given' } }),
    () => ({ credentialSubject: { type: ['BillOfLading'], scac: 'SGPU' } }),
    // An undefined term.
    (it) => ({ credentialSubject: { ...subjectOf(it), nonsense: 1 } }),
    (it) => ({ credentialStatus: { ...(it.credentialStatus as object), tokenId: 'ab'.repeat(32) } }),
    () => ({ credentialStatus: undefined }),
    () => ({ validUntil: '2036-01-01T00:00:00.000Z' }),
    () => ({ id: 'urn:uuid:01937b4a-0000-7000-8000-00000000000f' }),
    (it) => ({ proof: { ...(it.proof as object), created: '2025-01-01T00:00:00Z' } }),
  ];
  for (const change of changes)
    it(`is invalid with ${String(change).replaceAll(/\s+/g, ' ')}, as issued and as derived`, async () => {
      for (const credential of [base, derived]) {
        const { documentIntegrity } = await verify({ ...credential, ...change(credential) });
        expect(documentIntegrity.outcome).to.equal('invalid');
      }
    });

  it('is invalid without a proof, and not valid with a malformed one', async () => {
    for (const proof of [undefined, null, [], 'x', {}, { ...(base.proof as object), proofValue: 'zzz' }]) {
      const { documentIntegrity } = await verify({ ...base, proof });
      expect(documentIntegrity.outcome, JSON.stringify(proof)).not.to.equal('valid');
    }
    expect((await verify({ ...base, proof: undefined })).documentIntegrity.outcome).to.equal('invalid');
  });

  it("gives 'could not tell' for another cryptosuite or several proofs, and names them", async () => {
    const proof = { ...(base.proof as object), cryptosuite: 'bbs-2023' };
    const { documentIntegrity } = await verify({ ...base, proof });
    expect(documentIntegrity.outcome).to.equal('could not tell');
    expect(failuresOf(documentIntegrity)).to.contain('DataIntegrityProof, bbs-2023');
    const several = await verify({ ...base, proof: [base.proof, base.proof] });
    expect(failuresOf(several.documentIntegrity)).to.contain('2 proofs');
  });

  it('is invalid if it shows a package twice that was signed once', async () => {
    const signed = await issuer.sign({ type: ['BillOfLading'], packages: [{ packagesWeight: '1 t' }] });
    const shown = await derive({ ...signed }, ['']);
    expect((await verify(shown)).outcome).to.equal('valid');
    const twice = { ...subjectOf(shown), packages: [{ packagesWeight: '1 t' }, { packagesWeight: '1 t' }] };
    const forged = await forgeProof(
      shown as unknown as SignedCredential,
      { ...shown, credentialSubject: twice },
      true,
    );
    const { documentIntegrity } = await verify(forged);
    expect(documentIntegrity.outcome).to.equal('invalid');
    expect(failuresOf(documentIntegrity)).to.contain('uses a signed statement more than once');
  });

  it("gives 'could not tell' with content no signature covers, although the signature verifies", async () => {
    const signed = await issuer.sign({ type: ['BillOfLading'], scac: 'SGPU', blNumber: 'PO_:123' });
    const shown = await derive({ ...signed }, ['']);
    const forged = { ...shown, credentialSubject: { ...subjectOf(shown), blNumber: 'PO_:666' } };
    for (const credential of [forged, withSubject(JSON.parse('{"__proto__": "x"}') as JsonObject)]) {
      const { documentIntegrity } = await verify(credential);
      const signature = documentIntegrity.checks.find(({ check }) => check === 'signature');
      expect(signature?.outcome).to.equal('valid');
      expect(documentIntegrity.outcome).to.equal('could not tell');
      expect(failuresOf(documentIntegrity)).to.match(/^covered by the signature: \/credentialSubject\//);
    }
  });

  for (const [vessel, statement] of [
    ['PO_:123', 'contains "_:", which the signature would not protect from being changed'],
    [0.1 + 0.2, 'is a number that cannot be kept exactly'],
    [
      ['x', 'x'],
      'has a value more than once in its list, and a signature does not cover how often a value occurs',
    ],
  ] as const)
    it(`says that a value ${statement}, without the remedy for its author`, async () => {
      const { documentIntegrity } = await verify(withSubject({ vessel }));
      const covered = documentIntegrity.checks.find(({ check }) => check === 'covered by the signature');
      expect(covered?.found).to.equal(`/credentialSubject/vessel ${statement}`);
    });

  it('refuses pointers to reveal if it is derived already', async () => {
    const error = await verify(derived, {}, { reveal: ['/credentialSubject'] }).catch(
      (thrown: unknown) => thrown,
    );
    expect(error).to.have.property('code', 'CREDENTIAL_ALREADY_DERIVED');
  });
});
