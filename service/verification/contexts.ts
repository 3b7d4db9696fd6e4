import { codeOf, messageOf } from '../base/errors';
import type { FetchedJson } from '../did/fetched-json';
import { didWebUrl } from '../did/resolve-did-web';
import { isJsonObject } from '../issuance/credential';
import type { DocumentLoader } from '../issuance/document-loader';
import { couldNotTell, valid, type Check } from './answer';
import type { ContextLoader } from './disclose';
import type { NamedContext } from './presented-credential';

/** More than any credential needs. Contexts can import others, so their authors decide how many there are. */
const MOST_FETCHED = 30;

/** Loads a credential's contexts during one verification, and records the results. */
export interface ContextSource {
  load: ContextLoader;
  /**
   * The URL at which a context was found after redirects; its own URL if it was not found. Undefined for one
   * that is known here, and before it is loaded.
   */
  fetchedAt(url: string): string | undefined;
  /** The URLs that were fetched, in order. */
  fetched(): string[];
  /** The reasons why contexts could not be loaded, each with its URL. */
  problems(): string[];
}

/**
 * Loads known contexts, and any other over HTTPS, each once. Known contexts are never fetched, so their host
 * cannot change their meaning.
 */
export function createContextSource(
  known: DocumentLoader,
  fetchJson: (url: URL) => Promise<FetchedJson>,
): ContextSource {
  const answers = new Map<string, Promise<object>>();
  const fetched = new Map<string, string>();
  const problems: string[] = [];

  async function fetchContext(url: string): Promise<object> {
    if (answers.size >= MOST_FETCHED)
      throw new Error(`More than ${MOST_FETCHED} contexts would have to be fetched`);
    if (!URL.canParse(url)) throw new Error(`The context "${url}" is not a URL`);
    const answer = await fetchJson(new URL(url));
    if (answer.kind !== 'json') throw new Error(`The context ${url} ${answer.problem}`);
    if (!isJsonObject(answer.json) || !('@context' in answer.json))
      throw new Error(`The document at ${url} is not a JSON-LD context`);
    fetched.set(url, answer.url);
    // Without the tag that lets jsonld cache the document for longer than this verification.
    return { contextUrl: null, document: answer.json, documentUrl: url };
  }

  return {
    async load(url) {
      try {
        return await known(url);
      } catch (thrown) {
        if (codeOf(thrown) !== 'CONTEXT_UNKNOWN') throw thrown;
      }
      const answer = answers.get(url) ?? fetchContext(url);
      if (!answers.has(url)) {
        answers.set(url, answer);
        answer.catch((thrown: unknown) => problems.push(messageOf(thrown)));
      }
      return answer;
    },
    fetchedAt: (url: string) => (answers.has(url) ? (fetched.get(url) ?? url) : undefined),
    fetched: () => [...fetched.keys()],
    problems: () => [...problems],
  };
}

/**
 * URLs of the vocabularies that verifiers of such documents share. The rest of w3.org is not trusted: its
 * services can return what a caller passes in.
 */
const VOCABULARIES = [
  'https://www.w3.org/ns/',
  'https://www.w3.org/2018/credentials/',
  'https://trustvc.io/context/',
];

/**
 * Loads a credential's contexts, and checks whether its terms can be relied on. The signature covers the
 * meanings of the terms, not the terms: an attacker who chooses the contexts of a signed credential can swap
 * its labels, such as "shipper" for "consignee" (https://www.w3.org/TR/vc-data-integrity/#context-injection).
 * Every context must therefore be known here, published by the issuer, or trusted by the user. The target of
 * a redirect counts too: open redirects are common, and do not make their host the publisher of what they
 * lead to.
 *
 * @param trusted URLs of contexts that the user trusts.
 */
export async function checkTerms(
  named: readonly NamedContext[],
  source: ContextSource,
  issuer: string | undefined,
  trusted: readonly string[],
): Promise<Check> {
  const check = 'meaning of the terms';
  await Promise.allSettled(named.map(async ({ url }) => url !== undefined && source.load(url)));
  const inline = named.find(({ url }) => url === undefined);
  if (inline)
    return couldNotTell(check, `${inline.pointer} defines terms in place, which no signature covers`);
  const publishers = [...VOCABULARIES, ...publisherOf(issuer)];
  for (const { pointer, url = '' } of named) {
    const place = source.fetchedAt(url);
    if (place === undefined || trusted.includes(url)) continue;
    if (isBelow(publishers, url) && isBelow(publishers, place)) continue;
    const context = place === url ? url : `${url}, found at ${place}`;
    const found =
      `${pointer} is ${context}, which is neither known nor published by the issuer: ` +
      'its terms may mean anything (--trust-context if you know it)';
    return couldNotTell(check, found);
  }
  return valid(check, 'every context is known, or published by the issuer');
}

/**
 * The folder of the issuer's domain that belongs to the issuer: the whole domain, unless its did:web has a
 * path.
 */
function publisherOf(issuer: string | undefined): string[] {
  const url = issuer === undefined ? undefined : didWebUrl(issuer);
  return url ? [url.href.replace(/(\.well-known\/)?did\.json$/, '')] : [];
}

/**
 * Compares normalised URLs, without `..` or other spellings. Plain HTTP is only used for this machine
 * (fetch-json.ts). URLs with a query do not count: the answer may just repeat the query.
 */
function isBelow(prefixes: readonly string[], place: string): boolean {
  if (!URL.canParse(place)) return false;
  const { href, search } = new URL(place);
  const secure = href.replace(/^http:/, 'https:');
  return search === '' && prefixes.some((prefix) => secure.startsWith(prefix));
}
