import { expect } from 'chai';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { deriveCredential } from '../../service/verification/derive-credential';
import { verifyCredential } from '../../service/verification/verify-credential';
import { fakeSources } from '../helpers/credentials/fake-sources';
import { signWithMembers } from '../helpers/credentials/signed-proof';
import { createTestIssuer, type TestIssuer } from '../helpers/credentials/test-issuer';

describe('a proof that expires', () => {
  const EXPIRES = '2026-02-10T00:00:00Z';
  let issuer: TestIssuer;
  let forms: JsonObject[];

  before(async () => {
    issuer = await createTestIssuer();
    const base = { ...(await signWithMembers(issuer, { expires: EXPIRES })) };
    forms = [base, await deriveCredential(base, [''], createDocumentLoader(issuer.contextUrl))];
  });

  const integrity = async (credential: JsonObject, time: string) => {
    const clock = { now: () => Date.parse(time) };
    return (await verifyCredential(credential, fakeSources(issuer, { clock }))).documentIntegrity;
  };

  it('is valid before its expiry and invalid from then on, although its signature verifies', async () => {
    for (const credential of forms) {
      expect((await integrity(credential, '2026-02-09T00:00:00Z')).outcome).to.equal('valid');
      const { outcome, checks } = await integrity(credential, EXPIRES);
      expect(outcome).to.equal('invalid');
      expect(checks.find(({ check }) => check === 'proof')?.found).to.contain(EXPIRES);
      expect(checks.find(({ check }) => check === 'signature')?.outcome).to.equal('valid');
    }
  });

  it("gives 'could not tell' after its expiry if that is spelled as an IRI", async () => {
    const date = { '@type': 'http://www.w3.org/2001/XMLSchema#dateTime', '@value': EXPIRES };
    for (const credential of forms) {
      const proof: JsonObject = {
        ...(credential.proof as object),
        'https://w3id.org/security#expiration': date,
      };
      delete proof.expires;
      const spelled = { ...credential, proof };
      const { outcome, checks } = await integrity(spelled, '2026-02-20T00:00:00Z');
      expect(checks.find(({ check }) => check === 'signature')?.outcome).to.equal('valid');
      expect(outcome).to.equal('could not tell');
    }
  });
});
