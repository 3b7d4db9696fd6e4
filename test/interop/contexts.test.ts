import { isDeepStrictEqual } from 'node:util';
import { contexts as didContexts } from 'did-context';
import { contexts as credentialsContexts } from '@digitalbazaar/credentials-context';
import { contexts as dataIntegrityContexts } from '@digitalbazaar/data-integrity-context';
import { contexts as multikeyContexts } from '@digitalbazaar/multikey-context';
import * as trustvc from '@trustvc/w3c-context';
import { expect } from 'chai';
import * as jsonld from 'jsonld';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import { TRADETRUST_CONTEXT_URLS, type JsonObject } from '../../service/issuance/credential';
import { TRUSTVC_BILL_OF_LADING_CONTEXT_URL } from '../../service/base/published-files';
import full from '../fixtures/bill-of-lading-full.json';

const OUR_URL = 'https://issuer.example/contexts/bill-of-lading-v1.json';
const TERMS = 'https://example.com/terms#';

const documentLoader = createDocumentLoader(OUR_URL);

/** Contexts by URL. */
type Contexts = Readonly<Record<string, unknown>>;

const theirs: Contexts = {
  ...trustvc.trContexts,
  ...trustvc.renderContextsV2,
  ...trustvc.attachmentsContexts,
  ...trustvc.templateContexts,
};

/**
 * Writes the contexts into the document. A loader would not do: jsonld caches processed contexts by URL for
 * all loaders, and would use the first context for both.
 */
function inlined(document: JsonObject, contexts: Contexts): JsonObject {
  const urls = document['@context'] as string[];
  const withContexts = urls.map((url) =>
    url in contexts ? (contexts[url] as { '@context': object })['@context'] : url,
  );
  return { ...document, '@context': withContexts };
}

describe('our copies of the TradeTrust contexts', () => {
  for (const url of [...TRADETRUST_CONTEXT_URLS, TRUSTVC_BILL_OF_LADING_CONTEXT_URL]) {
    it(`define, protect and contain the same as the published one: ${url}`, async () => {
      expect(theirs[url]).to.have.property('@context');
      expect(spelledOut((await documentLoader(url)).document)).to.deep.equal(spelledOut(theirs[url]));
    });
  }
});

/** Expands short definitions: `"a": "iri"` becomes `"a": {"@id": "iri"}`. */
function spelledOut(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, child]: [string, unknown]) => {
    const isShort = typeof child === 'string' && !key.startsWith('@');
    return [key, isShort ? { '@id': child } : spelledOut(child)];
  });
  return Object.fromEntries(entries) as unknown;
}

describe('our Bill of Lading context', () => {
  /** Expands the subject with every term; returns its values by IRI. */
  async function expanded(contextUrl: string): Promise<Map<string, unknown>> {
    const attachments = [{ data: 'AA==', filename: 'a.pdf', mimeType: 'application/pdf' }];
    const document = {
      '@context': ['https://www.w3.org/ns/credentials/v2', ...TRADETRUST_CONTEXT_URLS, contextUrl],
      ...full.credentialSubject,
      attachments,
    };
    const urls = contextUrl === OUR_URL ? [...TRADETRUST_CONTEXT_URLS, OUR_URL] : [];
    const loaded = await Promise.all(urls.map(documentLoader));
    const ours = Object.fromEntries(loaded.map(({ document: one, documentUrl }) => [documentUrl, one]));
    const contexts = contextUrl === OUR_URL ? ours : theirs;
    const [node] = await jsonld.expand(inlined(document, contexts), { safe: true, documentLoader });
    return new Map(Object.entries(node ?? {}));
  }

  it('gives every term but packages the same IRI and value as TrustVC’s', async () => {
    const mine = await expanded(OUR_URL);
    const published = await expanded(TRUSTVC_BILL_OF_LADING_CONTEXT_URL);
    const packages = `${TERMS}packages`;
    expect(mine.size).to.equal(Object.keys(full.credentialSubject).length + 1);
    expect(mine.get('@type')).to.deep.equal([`${TERMS}BillOfLading`]);
    expect([...mine.keys()].filter((iri) => !published.has(iri))).to.deep.equal([packages]);
    expect([...published.keys()].filter((iri) => !mine.has(iri))).to.deep.equal([
      'https://example.com/terms/#packages',
    ]);
    expect(mine.get(packages)).to.deep.equal(published.get('https://example.com/terms/#packages'));
    for (const iri of [...mine.keys()].filter((iri) => iri !== packages))
      expect(mine.get(iri), iri).to.deep.equal(published.get(iri));
  });
});

describe('the base contexts of our packages', () => {
  const at = (contexts: Map<string, object>, url: string): unknown =>
    JSON.parse(JSON.stringify(contexts.get(url)));
  const theirBase = trustvc.contexts as Record<string, unknown>;

  for (const [url, contexts] of [
    ['https://w3id.org/security/data-integrity/v2', dataIntegrityContexts],
    ['https://w3id.org/security/multikey/v1', multikeyContexts],
    ['https://www.w3.org/ns/did/v1', didContexts],
  ] as const) {
    it(`are equal to TrustVC’s: ${url}`, () => {
      expect(at(contexts, url)).to.deep.equal(theirBase[url]);
    });
  }

  it('differ from TrustVC’s credentials/v2 only in status lists, which our credentials do not use', () => {
    const url = 'https://www.w3.org/ns/credentials/v2';
    const context = (document: unknown) => (document as { '@context': JsonObject })['@context'];
    const mine = context(at(credentialsContexts, url));
    const published = context(theirBase[url]);
    const names = [...new Set([...Object.keys(mine), ...Object.keys(published)])];
    expect(names.filter((name) => !isDeepStrictEqual(mine[name], published[name]))).to.deep.equal([
      'BitstringStatusList',
      'BitstringStatusListEntry',
    ]);
  });
});
