import { expect } from 'chai';
import type { FetchedJson } from '../../service/did/fetched-json';
import type { JsonObject } from '../../service/issuance/credential';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { verifyCredential, type VerificationSources } from '../../service/verification/verify-credential';
import { fakeSources } from '../helpers/credentials/fake-sources';
import { type TestIssuer } from '../helpers/credentials/test-issuer';
import {
  NOBODY,
  failuresOf,
  prepareVerification,
  type Verify,
} from '../helpers/credentials/verification-parts';

describe('the contexts of a verified credential', () => {
  let issuer: TestIssuer;
  let base: JsonObject;
  let derived: JsonObject;
  let verify: Verify;

  before(async () => {
    ({ issuer, base, derived, verify } = await prepareVerification());
  });

  /** Knows no context of the issuer. */
  const OF_NOBODY = createDocumentLoader('https://verifier.example/contexts/bill-of-lading-v1.json');
  const EVIL = 'https://evil.example/swapped.json';
  const TERMS = 'https://example.com/terms#';
  const swapped = { scac: `${TERMS}blNumber`, blNumber: `${TERMS}scac` };
  const BillOfLading = { '@id': `${TERMS}BillOfLading`, '@context': swapped };
  const context = { '@context': { '@protected': true, BillOfLading } };
  const serving =
    (json: unknown) =>
    async ({ href: url }: URL): Promise<FetchedJson> => ({
      kind: 'json',
      url,
      contentType: 'application/json',
      text: JSON.stringify(json),
      json,
    });
  const under = (url: unknown): JsonObject => ({
    ...derived,
    '@context': [...(derived['@context'] as unknown[]).slice(0, -1), url],
  });
  const exchanged = (url: unknown): JsonObject => ({
    ...under(url),
    credentialSubject: { type: ['BillOfLading'], scac: 'SGCNM21566325', blNumber: 'SGPU' },
  });

  it("give 'could not tell' if one that swaps labels is inline or from a stranger", async () => {
    const verification = await verify(exchanged(EVIL), { fetchJson: serving(context) });
    expect(verification.contextsFetched).to.deep.equal([EVIL]);
    expect(failuresOf(verification.documentIntegrity)).to.match(/^meaning of the terms: .*evil\.example/);
    expect(verification.documentIntegrity.outcome).to.equal('could not tell');
    const inline = await verify(exchanged(context['@context']));
    expect(inline.documentIntegrity.outcome).to.equal('could not tell');
    expect(failuresOf(inline.documentIntegrity)).to.contain('/@context/5 defines terms in place');
  });

  it("are accepted from a stranger whom the user trusts, and from the issuer's own domain", async () => {
    const own = serving((await createDocumentLoader(issuer.contextUrl)(issuer.contextUrl)).document);
    const trusted = await verify(under(EVIL), { fetchJson: own }, { trustedContexts: [EVIL] });
    expect(trusted.outcome).to.equal('valid');
    const verification = await verify(derived, { knownContexts: OF_NOBODY, fetchJson: own });
    expect(verification.contextsFetched).to.deep.equal([issuer.contextUrl]);
    expect(verification.outcome).to.equal('valid');
  });

  it("give 'could not tell' if they leave a member of the proof unsigned", async () => {
    const fetchJson = serving({ '@context': { note: '@index' } });
    const noting = {
      ...derived,
      '@context': [...(derived['@context'] as unknown[]), 'https://issuer.example/note.json'],
    };
    expect((await verify(noting, { fetchJson })).outcome).to.equal('valid');
    const proof = { ...(derived.proof as object), note: 'revoked' };
    const { documentIntegrity } = await verify({ ...noting, proof }, { fetchJson });
    expect(documentIntegrity.outcome).to.equal('could not tell');
    expect(failuresOf(documentIntegrity)).to.match(/^covered by the signature: \/proof\/note .*@index/);
  });

  it("do not count as the publisher's after a redirect, with a query or from an echo service", async () => {
    const redirected: VerificationSources['fetchJson'] = async (url) =>
      serving(context)(new URL(url.pathname === '/go' ? EVIL : url.href));
    for (const url of [
      'https://issuer.example/go',
      'https://issuer.example/echo?json=x',
      'https://www.w3.org/services/html2txt',
      'https://www.w3.org/ns/../services/html2txt',
    ]) {
      const { documentIntegrity } = await verify(exchanged(url), { fetchJson: redirected });
      expect(documentIntegrity.outcome, url).to.equal('could not tell');
      expect(failuresOf(documentIntegrity)).to.match(/^meaning of the terms: [^;]*$/);
    }
    const overPlainHttp: VerificationSources['fetchJson'] = async () =>
      serving(context)(new URL('http://issuer.example/c.json'));
    const local = await verify(exchanged('https://issuer.example/c.json'), { fetchJson: overPlainHttp });
    expect(failuresOf(local.documentIntegrity)).to.equal('');
    const moved = await verify(exchanged('https://issuer.example/go'), { fetchJson: redirected });
    expect(failuresOf(moved.documentIntegrity)).to.contain(`/go, found at ${EVIL}`);
  });

  it('are not fetched if they are known', async () => {
    const sources = fakeSources(issuer, { fetchJson: serving(context) });
    expect((await verifyCredential(derived, sources)).outcome).to.equal('valid');
    expect(sources.asked).to.deep.equal([]);
  });

  it("give 'could not tell' if one cannot be fetched, which is tried once", async () => {
    const sources = fakeSources(issuer, { knownContexts: OF_NOBODY, fetchJson: async () => NOBODY });
    for (const credential of [base, derived]) {
      sources.asked.length = 0;
      const { documentIntegrity } = await verifyCredential(credential, sources);
      expect(documentIntegrity.outcome).to.equal('could not tell');
      expect(failuresOf(documentIntegrity)).to.contain('cannot be reached');
      expect(sources.asked).to.deep.equal([issuer.contextUrl]);
    }
  });

  it("give 'could not tell' after 30 fetches, also for contexts scoped to terms", async () => {
    const names = Array.from({ length: 100 }, (_, index) => `a${index}`);
    const scoped = names.map((name) => [
      name,
      { '@id': `https://evil.example/#${name}`, '@context': `https://evil.example/${name}.json` },
    ]);
    const fetchJson: VerificationSources['fetchJson'] = async (url) =>
      serving({ '@context': url.href === EVIL ? (Object.fromEntries(scoped) as object) : {} })(url);
    const sources = fakeSources(issuer, { fetchJson });
    const members = Object.fromEntries(names.map((name) => [name, { name: 'x' }]));
    const credential = { ...derived, ...members, '@context': [...(derived['@context'] as string[]), EVIL] };
    const { documentIntegrity } = await verifyCredential(credential, sources);
    expect(documentIntegrity.outcome).to.equal('could not tell');
    expect(failuresOf(documentIntegrity)).to.contain('More than 30 contexts would have to be fetched');
    expect(sources.asked).to.have.lengthOf(30);
  });

  it("give 'could not tell' if a fetched document is not a context", async () => {
    for (const json of [{}, [], null, 'x', 7]) {
      const sources = { knownContexts: OF_NOBODY, fetchJson: serving(json) };
      const { documentIntegrity } = await verify(derived, sources);
      expect(documentIntegrity.outcome, JSON.stringify(json)).to.equal('could not tell');
    }
  });
});
