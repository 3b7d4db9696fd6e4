/**
 * The URL of a did:web's DID document, always with https. Undefined if the text is not a did:web identifier.
 */
export function didWebUrl(did: string): URL | undefined {
  if (!did.startsWith(PREFIX) || !DID.test(did)) return undefined;
  const segments = did.slice(PREFIX.length).split(':').map(decoded);
  if (segments.some((segment) => segment === undefined || UNFIT.test(segment))) return undefined;
  const [host = '', ...path] = segments;
  const folder =
    path.length === 0
      ? '/.well-known'
      : path.map((segment) => `/${encodeURIComponent(segment ?? '')}`).join('');
  const url = `https://${host}${folder}/did.json`;
  return URL.canParse(url) ? new URL(url) : undefined;
}

/**
 * https://w3c-ccg.github.io/did-method-web/#read-resolve: a colon is a slash, `%3A` the colon before a port.
 */
const PREFIX = 'did:web:';

/**
 * The characters of a DID (https://www.w3.org/TR/did-core/#did-syntax). Look-alike letters of other scripts
 * would name another domain than the one that a person reads.
 */
const DID = /^[A-Za-z0-9._:%-]+$/;

/** Segments that would have another meaning in a URL: empty, a relative folder, a query, a user. */
const UNFIT = /^\.{0,2}$|[/?#\\@]/;

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
