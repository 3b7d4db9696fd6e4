import { expect } from 'chai';
import type { FetchedJson } from '../../service/did/fetch-json';
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

describe('the contexts of a credential that is verified', () => {
  let issuer: TestIssuer;
  let base: JsonObject;
  let derived: JsonObject;
  let verify: Verify;

  before(async () => {
    ({ issuer, base, derived, verify } = await prepareVerification());
  });

  const EVIL = 'https://evil.example/swapped.json';
  const swapped = {
    scac: 'https://example.com/terms#blNumber',
    blNumber: 'https://example.com/terms#scac',
  };
  const context = {
    '@context': {
      '@protected': true,
      BillOfLading: { '@id': 'https://example.com/terms#BillOfLading', '@context': swapped },
    },
  };
  const serving =
    (json: unknown): ((url: URL) => Promise<FetchedJson>) =>
    async (url) => ({ kind: 'json', url: url.href, contentType: 'application/json', json });
  const under = (url: unknown): JsonObject => ({
    ...derived,
    '@context': [...(derived['@context'] as unknown[]).slice(0, -1), url],
  });
  const exchanged = (url: unknown): JsonObject => ({
    ...under(url),
    credentialSubject: { type: ['BillOfLading'], scac: 'SGCNM21566325', blNumber: 'SGPU' },
  });

  it('of a stranger may exchange labels under a good signature: that is not VALID', async () => {
    const verification = await verify(exchanged(EVIL), { fetchJson: serving(context) });
    expect(verification.contextsFetched).to.deep.equal([EVIL]);
    expect(failuresOf(verification.documentIntegrity)).to.match(/^meaning of the terms: .*evil\.example/);
    expect(verification.documentIntegrity.outcome).to.equal('could not tell');
    const inline = await verify(exchanged(context['@context']));
    expect(inline.documentIntegrity.outcome).to.equal('could not tell');
    expect(failuresOf(inline.documentIntegrity)).to.contain('/@context/5 defines terms in place');
  });

  it('of a stranger are taken when the user knows them', async () => {
    const verification = await verify(
      under(EVIL),
      { fetchJson: serving((await createDocumentLoader(issuer.contextUrl)(issuer.contextUrl)).document) },
      { trustedContexts: [EVIL] },
    );
    expect(verification.outcome).to.equal('valid');
  });

  it("of the issuer's own domain are fetched and taken", async () => {
    const known = createDocumentLoader('https://verifier.example/contexts/bill-of-lading-v1.json');
    const own = (await createDocumentLoader(issuer.contextUrl)(issuer.contextUrl)).document;
    const verification = await verify(derived, { knownContexts: known, fetchJson: serving(own) });
    expect(verification.contextsFetched).to.deep.equal([issuer.contextUrl]);
    expect(verification.outcome).to.equal('valid');
  });

  it("are not the publisher's where a redirect leads away, a query decides, or a service answers for anybody", async () => {
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

  it('that are known are not asked for', async () => {
    const sources = fakeSources(issuer, { fetchJson: serving(context) });
    expect((await verifyCredential(derived, sources)).outcome).to.equal('valid');
    expect(sources.asked).to.deep.equal([]);
  });

  it('that cannot be had leave the document unjudged, each asked for once', async () => {
    const sources = fakeSources(issuer, {
      knownContexts: createDocumentLoader('https://verifier.example/c.json'),
      fetchJson: async () => NOBODY,
    });
    for (const credential of [base, derived]) {
      sources.asked.length = 0;
      const { documentIntegrity } = await verifyCredential(credential, sources);
      expect(documentIntegrity.outcome).to.equal('could not tell');
      expect(failuresOf(documentIntegrity)).to.contain('cannot be reached');
      expect(sources.asked).to.deep.equal([issuer.contextUrl]);
    }
  });

  it('that name more and more of them are given up, also where a term brings one', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `a${index}`);
    const scoped = names.map((name): [string, object] => {
      const terms = {
        '@id': `https://evil.example/#${name}`,
        '@context': `https://evil.example/${name}.json`,
      };
      return [name, terms];
    });
    const fetchJson: VerificationSources['fetchJson'] = async (url) =>
      serving({ '@context': url.href === EVIL ? Object.fromEntries(scoped) : {} })(url);
    const sources = fakeSources(issuer, { fetchJson });
    const members = Object.fromEntries(names.map((name) => [name, { name: 'x' }]));
    const credential = { ...derived, ...members, '@context': [...(derived['@context'] as string[]), EVIL] };
    const { documentIntegrity } = await verifyCredential(credential, sources);
    expect(documentIntegrity.outcome).to.equal('could not tell');
    expect(failuresOf(documentIntegrity)).to.contain('More than 30 contexts would have to be fetched');
    expect(sources.asked).to.have.lengthOf(30);
  });

  it('that are no contexts leave it unjudged', async () => {
    for (const json of [{}, [], null, 'x', 7]) {
      const knownContexts = createDocumentLoader('https://verifier.example/c.json');
      const { documentIntegrity } = await verify(derived, { knownContexts, fetchJson: serving(json) });
      expect(documentIntegrity.outcome, JSON.stringify(json)).to.equal('could not tell');
    }
  });
});
