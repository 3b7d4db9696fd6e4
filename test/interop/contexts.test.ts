import { isDeepStrictEqual } from 'node:util';
import { contexts as didContexts } from 'did-context';
import { contexts as credentialsContexts } from '@digitalbazaar/credentials-context';
import { contexts as dataIntegrityContexts } from '@digitalbazaar/data-integrity-context';
import { contexts as multikeyContexts } from '@digitalbazaar/multikey-context';
import * as trustvc from '@trustvc/w3c-context';
import { expect } from 'chai';
import * as jsonld from 'jsonld';
import { createDocumentLoader } from '../../service/issuance/document-loader';
import type { JsonObject } from '../../service/issuance/credential';
import { TRUSTVC_BILL_OF_LADING_CONTEXT_URL } from '../../service/base/published-files';
import full from '../fixtures/bill-of-lading-full.json';
import { TRADETRUST_CONTEXTS, variedCredentials } from '../helpers/credentials/varied-credentials';

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

/** The canonical RDF that a signature covers, or the reason why safe mode refuses it. */
async function meaningOf(document: JsonObject, contexts: Contexts): Promise<string> {
  try {
    const options = { algorithm: 'RDFC-1.0', safe: true, documentLoader } as const;
    return await jsonld.canonize(inlined(document, contexts), options);
  } catch (thrown) {
    const { name, message, details } = thrown as Error & { details?: { event?: jsonld.JsonLdEvent } };
    const { code, details: event } = details?.event ?? {};
    return `refused: ${name} ${message} ${code} ${JSON.stringify(event)}`;
  }
}

/** The contexts that our loader gives for these URLs. */
async function loadOurs(): Promise<Contexts> {
  const documents = await Promise.all([...TRADETRUST_CONTEXTS, OUR_URL].map((url) => documentLoader(url)));
  return Object.fromEntries(documents.map(({ documentUrl, document }) => [documentUrl, document]));
}

const isRefused = (meaning: string): boolean => meaning.startsWith('refused');

describe('our copies of the TradeTrust contexts', () => {
  let ours: Contexts;
  before(async () => {
    ours = await loadOurs();
  });

  for (const url of TRADETRUST_CONTEXTS) {
    it(`define, protect and contain the same as the published one: ${url}`, () => {
      expect(theirs[url]).to.have.property('@context');
      expect(spelledOut(ours[url])).to.deep.equal(spelledOut(theirs[url]));
    });
  }

  it('give the same canonical RDF as the published ones for many credentials', async () => {
    const meanings = new Set<string>();
    for (const credential of variedCredentials(1, 120)) {
      const meaning = await meaningOf(credential, ours);
      expect(await meaningOf(credential, theirs), JSON.stringify(credential)).to.equal(meaning);
      if (!isRefused(meaning)) meanings.add(meaning);
    }
    expect(meanings.size).to.be.greaterThan(110);
  });

  it('refuse and accept the same terms in the same places', async () => {
    let refused = 0;
    const credentials = variedCredentials(2, 120, true);
    for (const credential of credentials) {
      const meaning = await meaningOf(credential, ours);
      expect(await meaningOf(credential, theirs), JSON.stringify(credential)).to.equal(meaning);
      refused += Number(isRefused(meaning));
    }
    expect(refused).to.be.within(30, 110);
  });

  // These tests show that the two above would notice a difference in any definition.
  for (const url of TRADETRUST_CONTEXTS) {
    it(`would give other canonical RDF if any one definition differed: ${url}`, async () => {
      const credentials = variedCredentials(1, 120);
      const mutants = mutantsOf(ours[url] as JsonObject);
      expect(mutants.length).to.be.greaterThan(1);
      for (const { path, mutant } of mutants) {
        const isFound = await isNoticed(credentials, ours, { ...ours, [url]: mutant });
        expect(isFound, path).to.equal(true);
      }
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

async function isNoticed(credentials: JsonObject[], ours: Contexts, changed: Contexts): Promise<boolean> {
  for (const credential of credentials) {
    if ((await meaningOf(credential, changed)) !== (await meaningOf(credential, ours))) return true;
  }
  return false;
}

/**
 * One copy of the context for each of its IRIs, with that IRI changed. An unused prefix is not changed: it
 * has no meaning by itself.
 */
function mutantsOf(context: JsonObject): { path: string; mutant: JsonObject }[] {
  return Object.entries(context).flatMap(([key, value]) => {
    if (typeof value === 'string' && value.startsWith('http') && key !== 'xsd')
      return [{ path: key, mutant: { ...context, [key]: `${value}Changed` } }];
    if (typeof value !== 'object' || value === null) return [];
    return mutantsOf(value as JsonObject).map(({ path, mutant }) => ({
      path: `${key}/${path}`,
      mutant: { ...context, [key]: mutant },
    }));
  });
}

describe('our Bill of Lading context', () => {
  let ours: Contexts;
  before(async () => {
    ours = await loadOurs();
  });

  /** Expands the subject with every term; returns its values by IRI. */
  async function expanded(contextUrl: string): Promise<Map<string, unknown>> {
    const attachments = [{ data: 'AA==', filename: 'a.pdf', mimeType: 'application/pdf' }];
    const document = {
      '@context': ['https://www.w3.org/ns/credentials/v2', ...TRADETRUST_CONTEXTS.slice(0, 3), contextUrl],
      ...full.credentialSubject,
      attachments,
    };
    const contexts = contextUrl === OUR_URL ? ours : theirs;
    const [node] = await jsonld.expand(inlined(document, contexts), { safe: true, documentLoader });
    return new Map(Object.entries(node ?? {}));
  }

  it('gives every term but packages the same IRI and value as TrustVC’s', async () => {
    const mine = await expanded(OUR_URL);
    const published = await expanded(TRUSTVC_BILL_OF_LADING_CONTEXT_URL);
    const packages = `${TERMS}packages`;
    expect(mine.size).to.equal(Object.keys(full.credentialSubject).length + 1);
    for (const term of Object.keys(full.credentialSubject)) {
      if (term === 'packages' || term === 'type') continue;
      expect(mine.get(TERMS + term), term)
        .to.deep.equal(published.get(TERMS + term))
        .and.not.equal(undefined);
    }
    expect(mine.get('@type')).to.deep.equal([`${TERMS}BillOfLading`]);
    expect([...mine.keys()].filter((iri) => !published.has(iri))).to.deep.equal([packages]);
    expect([...published.keys()].filter((iri) => !mine.has(iri))).to.deep.equal([
      'https://example.com/terms/#packages',
    ]);
    expect(mine.get(packages)).to.deep.equal(published.get('https://example.com/terms/#packages'));
    for (const iri of [...mine.keys()].filter((iri) => iri !== packages))
      expect(mine.get(iri), iri).to.deep.equal(published.get(iri));
  });

  it('means the same as TrustVC’s for many subjects, except for the IRI of packages', async () => {
    const renamed = (meaning: string): string => meaning.replaceAll('/terms/#packages>', '/terms#packages>');
    let different = 0;
    for (const credential of variedCredentials(3, 60)) {
      const contexts = (credential['@context'] as string[]).slice(0, -1);
      const mine = await meaningOf({ ...credential, '@context': [...contexts, OUR_URL] }, ours);
      const published = await meaningOf(credential, theirs);
      different += Number(mine !== published);
      // Canonicalisation sorts by IRI, so that the lines may be in another order.
      expect(renamed(published).split('\n').length).to.equal(mine.split('\n').length);
      if (!published.includes('/terms/#packages>')) expect(mine).to.equal(published);
    }
    expect(different).to.be.greaterThan(10);
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
