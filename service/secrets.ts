/** What stands in a log or an error in place of a secret. */
const MASK = '[secret]';

/**
 * A function that masks every given secret wherever it appears in a text. Libraries put request URLs, with the provider's
 * key in them, into their error messages: everything that leaves the process as text goes through this.
 */
export function secretMasker(secrets: readonly (string | undefined)[]): (text: string) => string {
  const known = [...new Set(secrets.flatMap(spellings))].sort((a, b) => b.length - a.length);
  return (text) => known.reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
}

/** Other spellings under which a library may print the same secret. Very short values would mask half of every log. */
function spellings(secret: string | undefined): string[] {
  if (secret === undefined) return [];
  const escaped = JSON.stringify(secret).slice(1, -1);
  return [secret, secret.replace(/^0x/i, ''), encodeURIComponent(secret), escaped].filter(
    (s) => s.length >= 6,
  );
}

/** A URL fit for a log: no user, password, path or query, all of which carry keys at one provider or another. */
export function printableUrl(url: string): string {
  const { protocol, host, pathname, search } = new URL(url);
  return `${protocol}//${host}${pathname.length > 1 || search ? '/…' : ''}`;
}

/** What must not be printed of a URL: all that it has beyond its host, as a whole and in the parts that are long enough to be told apart. */
export function secretPartsOf(url: string): string[] {
  const { username, password, pathname, search, href } = new URL(url);
  const segments = pathname.split('/').filter((segment) => segment.length >= 16);
  const beyondHost = username + password + pathname.slice(1) + search;
  if (beyondHost === '') return [];
  return [url, href, username, password, ...segments, search.slice(1)].filter((part) => part !== '');
}

/** The text that a part of a URL stands for; a `%` that encodes nothing stands for itself. */
export function percentDecoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
