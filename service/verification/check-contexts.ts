import { didWebUrl } from '../did/did-web-url';
import type { Check } from './answer';
import type { NamedContext } from './inspect-content';

/**
 * URLs of the vocabularies that verifiers of such documents share. The rest of w3.org is not trusted: its
 * services can return what a caller passes in.
 */
const VOCABULARIES = [
  'https://www.w3.org/ns/',
  'https://www.w3.org/2018/credentials/',
  'https://trustvc.io/context/',
];

/** The contexts that are trusted. */
interface ContextTrust {
  /** URLs of contexts that are known here. */
  known: ReadonlySet<string>;
  issuer: string | undefined;
  /** URLs that the user trusts. */
  trusted: readonly string[];
  /** The URL at which a context was found after redirects. */
  foundAt: (url: string) => string;
}

/**
 * Checks whether a credential's terms can be relied on. The signature covers the meanings of the terms, not
 * the terms: an attacker who chooses the contexts of a signed credential can swap its labels, such as
 * "shipper" for "consignee" (https://www.w3.org/TR/vc-data-integrity/#context-injection). Every context must
 * therefore be known here, published by the issuer, or trusted by the user. The target of a redirect counts
 * too: open redirects are common, and do not make their host the publisher of what they lead to.
 */
export function checkContexts(
  contexts: readonly NamedContext[],
  { known, issuer, trusted, foundAt }: ContextTrust,
): Check {
  const check = 'meaning of the terms';
  const inline = contexts.find(({ url }) => url === undefined);
  if (inline) {
    const found = `${inline.pointer} defines terms in place, which no signature covers`;
    return { check, outcome: 'could not tell', found };
  }
  const publishers = [...VOCABULARIES, ...publisherOf(issuer)];
  const foreign = contexts.find(
    ({ url = '' }) =>
      !known.has(url) &&
      !trusted.includes(url) &&
      ![url, foundAt(url)].every((place) => isBelow(publishers, place)),
  );
  if (foreign) {
    const found =
      `${foreign.pointer} is ${placeOf(foreign, foundAt)}, which is neither known nor published ` +
      'by the issuer: its terms may mean anything';
    return { check, outcome: 'could not tell', found: `${found} (--trust-context if you know it)` };
  }
  return { check, outcome: 'valid', found: 'every context is known, or published by the issuer' };
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

function placeOf({ url = '' }: NamedContext, foundAt: ContextTrust['foundAt']): string {
  const place = foundAt(url);
  return place === url ? url : `${url}, found at ${place}`;
}
