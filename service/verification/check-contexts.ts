import { didWebUrl } from '../did/did-web-url';
import type { Check } from './answer';
import type { NamedContext } from './inspect-content';

/** Who publishes the vocabularies that verifiers of such documents share. */
const VOCABULARIES = ['https://www.w3.org/', 'https://trustvc.io/context/'];

/**
 * Whether the words of a credential can be relied on. The signature covers what the terms stand for, not the terms: whoever may choose the
 * contexts of a signed credential can swap its labels, "shipper" for "consignee" (https://www.w3.org/TR/vc-data-integrity/#context-injection).
 * So every context must be one that is known here, that the issuer publishes, or that the user trusts.
 */
export function checkContexts(
  contexts: readonly NamedContext[],
  {
    known,
    issuer,
    trusted,
  }: { known: ReadonlySet<string>; issuer: string | undefined; trusted: readonly string[] },
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
      !publishers.some((prefix) => normal(url).startsWith(prefix)),
  );
  if (foreign) {
    const found = `${foreign.pointer} is ${foreign.url}, which is neither known nor of the issuer: its terms may mean anything`;
    return { check, outcome: 'could not tell', found: `${found} (--trust-context if you know it)` };
  }
  return { check, outcome: 'valid', found: 'every context is known, or published by the issuer' };
}

/** The folder of the issuer's domain that is its own: all of it, unless its did:web has a path. */
function publisherOf(issuer: string | undefined): string[] {
  const url = issuer === undefined ? undefined : didWebUrl(issuer);
  return url ? [url.href.replace(/(\.well-known\/)?did\.json$/, '')] : [];
}

/** Without `..` and other spellings of a place that is not below the prefix. */
function normal(url: string): string {
  return URL.canParse(url) ? new URL(url).href : '';
}
