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

describe('the issuer of a verified credential', () => {
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

  it('is found as an object with an id, and with relative or embedded verification methods', async () => {
    const named = await issuer.sign(undefined, { issuer: { id: issuer.did } as unknown as string });
    expect((await verify(named)).outcome).to.equal('valid');
    const [method] = issuer.didDocument.verificationMethod;
    const relative = { verificationMethod: [{ ...method, id: '#keys-1' }], assertionMethod: ['#keys-1'] };
    expect(await answers(relative)).to.deep.equal(['valid', 'valid', 'valid']);
    const embedded = { verificationMethod: [], assertionMethod: [method] };
    expect(await answers(embedded)).to.deep.equal(['valid', 'valid', 'valid']);
  });

  it('is invalid if the domain does not publish the DID; the signature is then not judged', async () => {
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

  it("is 'could not tell' if the domain does not answer", async () => {
    const verification = await verify(derived, { resolveDid: async () => NOBODY });
    expect(outcomesOf(verification)).to.deep.equal(['could not tell', 'could not tell', 'valid']);
  });

  it('is invalid if the key is missing, not for assertions, or of another controller', async () => {
    const [method] = issuer.didDocument.verificationMethod;
    const wrong = ['could not tell', 'invalid', 'valid'];
    expect(await answers({ verificationMethod: [] })).to.deep.equal(wrong);
    expect(await answers({ assertionMethod: [] })).to.deep.equal(wrong);
    expect(await answers({ assertionMethod: undefined })).to.deep.equal(wrong);
    const controlled = { verificationMethod: [{ ...method, controller: 'did:web:evil.example' }] };
    expect(await answers(controlled)).to.deep.equal(wrong);
  });

  it('is invalid with a revoked or expired key, or an unreadable time of either', async () => {
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
      for (const moment of ['2027-01-01T00:00:00Z', '10000-01-01T00:00:00Z', '+010000-01-01T00:00:00.000Z'])
        expect(await ending({ [name]: moment }), moment).to.deep.equal(['valid', 'valid', 'valid']);
    }
  });

  it("is 'could not tell' with another kind of key, without delay if that is oversized", async () => {
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

  it('is invalid if somebody else signed, even if their own DID would resolve', async () => {
    const other = await createTestIssuer('evil.example');
    const signed = await other.sign(undefined, { issuer: issuer.did });
    const knownContexts = createDocumentLoader(other.contextUrl);
    const verification = await verify(signed, { knownContexts });
    expect(failuresOf(verification.issuerIdentity)).to.contain('somebody else signed');
    expect(verification.issuerIdentity.outcome).to.equal('invalid');
  });

  it('is valid, but the signature is not, if the DID document has another key of the same name', async () => {
    const other = await createTestIssuer();
    expect(await answers(other.didDocument)).to.deep.equal(['invalid', 'valid', 'valid']);
  });

  it("is 'could not tell' with another DID method, and invalid if missing or malformed", async () => {
    expect((await verify({ ...derived, issuer: 'did:key:z6Mk' })).issuerIdentity.outcome).to.equal(
      'could not tell',
    );
    for (const bad of [undefined, null, 7, {}, [], 'did:web:', 'did:web:a%2Fb'])
      expect((await verify({ ...derived, issuer: bad })).issuerIdentity.outcome).to.equal('invalid');
  });
});
