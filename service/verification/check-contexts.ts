import { didWebUrl } from '../did/did-web-url';
import type { Check } from './answer';
import type { NamedContext } from './inspect-content';

/**
 * Where the vocabularies are that verifiers of such documents share. Not all of w3.org: its services repeat
 * what anybody passes in.
 */
const VOCABULARIES = [
  'https://www.w3.org/ns/',
  'https://www.w3.org/2018/credentials/',
  'https://trustvc.io/context/',
];

/** Whose contexts count. */
interface ContextTrust {
  /** URLs of contexts that are known here. */
  known: ReadonlySet<string>;
  issuer: string | undefined;
  /** URLs that the user trusts. */
  trusted: readonly string[];
  /** Where a context was found in the end. */
  foundAt: (url: string) => string;
}

/**
 * Whether the words of a credential can be relied on. The signature covers what the terms stand for, not the
 * terms: whoever may choose the contexts of a signed credential can swap its labels, "shipper" for
 * "consignee" (https://www.w3.org/TR/vc-data-integrity/#context-injection). So every context must be one that
 * is known here, that the issuer publishes, or that the user trusts. Where a redirect leads counts too: a
 * page that sends visitors wherever its URL says is common, and makes nobody the publisher.
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
    const found = `${foreign.pointer} is ${placeOf(foreign, foundAt)}, which is neither known nor of the issuer: its terms may mean anything`;
    return { check, outcome: 'could not tell', found: `${found} (--trust-context if you know it)` };
  }
  return { check, outcome: 'valid', found: 'every context is known, or published by the issuer' };
}

/** The folder of the issuer's domain that is its own: all of it, unless its did:web has a path. */
function publisherOf(issuer: string | undefined): string[] {
  const url = issuer === undefined ? undefined : didWebUrl(issuer);
  return url ? [url.href.replace(/(\.well-known\/)?did\.json$/, '')] : [];
}

/**
 * Compared without `..` and other spellings; over plain HTTP only this machine is asked (fetch-json.ts). What
 * answers to a query may say what the query says: nobody publishes that.
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
