import { expect } from 'chai';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import type { VerificationSources } from '../../service/verification/verify-credential';
import { resolved } from '../helpers/credentials/fake-sources';
import { createTestIssuer, type TestIssuer } from '../helpers/credentials/test-issuer';
import {
  NOBODY,
  failuresOf,
  outcomesOf,
  prepareVerification,
  type Verify,
} from '../helpers/credentials/verification-parts';

describe('the issuer of a credential that is verified', () => {
  let issuer: TestIssuer;
  let derived: JsonObject;
  let verify: Verify;

  before(async () => {
    ({ issuer, derived, verify } = await prepareVerification());
  });

  const answers = async (document: object): Promise<string[]> => {
    const resolveDid: VerificationSources['resolveDid'] = async (did) =>
      resolved(did, { ...issuer.didDocument, ...document });
    return outcomesOf(await verify(derived, { resolveDid }));
  };

  it('is found with an id inside of an object, and with identifiers relative to the DID', async () => {
    const named = await issuer.sign(undefined, { issuer: { id: issuer.did } as unknown as string });
    expect((await verify(named)).outcome).to.equal('valid');
    const [method] = issuer.didDocument.verificationMethod;
    const relative = { verificationMethod: [{ ...method, id: '#keys-1' }], assertionMethod: ['#keys-1'] };
    expect(await answers(relative)).to.deep.equal(['valid', 'valid', 'valid']);
    const embedded = { verificationMethod: [], assertionMethod: [method] };
    expect(await answers(embedded)).to.deep.equal(['valid', 'valid', 'valid']);
  });

  it('is wrong when the domain publishes no such DID; then the signature is not judged', async () => {
    const resolveDid: VerificationSources['resolveDid'] = async () => ({
      ...NOBODY,
      kind: 'refused',
      problem: 'answers 404',
    });
    expect(outcomesOf(await verify(derived, { resolveDid }))).to.deep.equal([
      'could not tell',
      'invalid',
      'valid',
    ]);
  });

  it('is not judged when the domain does not answer', async () => {
    const verification = await verify(derived, { resolveDid: async () => NOBODY });
    expect(outcomesOf(verification)).to.deep.equal(['could not tell', 'could not tell', 'valid']);
  });

  it('is wrong when the key is not in the document, is not for this purpose, or is of another controller', async () => {
    const [method] = issuer.didDocument.verificationMethod;
    const wrong = ['could not tell', 'invalid', 'valid'];
    expect(await answers({ verificationMethod: [] })).to.deep.equal(wrong);
    expect(await answers({ assertionMethod: [] })).to.deep.equal(wrong);
    expect(await answers({ assertionMethod: undefined })).to.deep.equal(wrong);
    const controlled = { verificationMethod: [{ ...method, controller: 'did:web:evil.example' }] };
    expect(await answers(controlled)).to.deep.equal(wrong);
  });

  it('is wrong with a key that was revoked or has expired, also at a moment that cannot be read', async () => {
    const [method] = issuer.didDocument.verificationMethod;
    const ending = async (end: object): Promise<string[]> =>
      answers({ verificationMethod: [{ ...method, ...end }] });
    for (const name of ['revoked', 'expires']) {
      for (const moment of ['2026-01-15T00:00:00Z', 'yesterday', true, ['2027-01-01T00:00:00Z']])
        expect(await ending({ [name]: moment }), `${name} ${String(moment)}`).to.deep.equal([
          'could not tell',
          'invalid',
          'valid',
        ]);
      expect(await ending({ [name]: '2027-01-01T00:00:00Z' })).to.deep.equal(['valid', 'valid', 'valid']);
    }
  });

  it('is not judged with a key of another kind, nor does one without end hold it up', async () => {
    const [method] = issuer.didDocument.verificationMethod;
    const notJudged = ['could not tell', 'could not tell', 'valid'];
    for (const publicKeyMultibase of [
      'z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK',
      `zDna${'2'.repeat(1_000_000)}`,
      '',
      7,
    ])
      expect(await answers({ verificationMethod: [{ ...method, publicKeyMultibase }] })).to.deep.equal(
        notJudged,
      );
    const jwk = { verificationMethod: [{ ...method, type: 'JsonWebKey' }] };
    expect(await answers(jwk)).to.deep.equal(notJudged);
  });

  it('is wrong when somebody else signed, whose own DID would resolve', async () => {
    const other = await createTestIssuer('evil.example');
    const signed = await other.sign(undefined, { issuer: issuer.did });
    const knownContexts = createDocumentLoader(other.contextUrl);
    const verification = await verify(signed, { knownContexts });
    expect(failuresOf(verification.issuerIdentity)).to.contain('somebody else signed');
    expect(verification.issuerIdentity.outcome).to.equal('invalid');
  });

  it("has the document's signature fail when the DID document has another key under the same name", async () => {
    const other = await createTestIssuer();
    expect(await answers(other.didDocument)).to.deep.equal(['invalid', 'valid', 'valid']);
  });

  it('is not judged when it is no did:web, and is wrong when it is none at all', async () => {
    expect((await verify({ ...derived, issuer: 'did:key:z6Mk' })).issuerIdentity.outcome).to.equal(
      'could not tell',
    );
    for (const bad of [undefined, null, 7, {}, [], 'did:web:', 'did:web:a%2Fb'])
      expect((await verify({ ...derived, issuer: bad })).issuerIdentity.outcome).to.equal('invalid');
  });
});
