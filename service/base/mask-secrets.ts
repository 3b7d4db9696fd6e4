import { orUndefined } from './errors';

/** Replaces a secret in a log or an error. */
export const MASK = '[secret]';

/**
 * Returns a function that masks every given secret in a text. Libraries include request URLs, with the
 * provider's key, in their error messages, so all text that leaves the process goes through this function.
 */
export function secretMasker(secrets: readonly (string | undefined)[]): (text: string) => string {
  const known = [...new Set(secrets)].filter((secret) => secret !== undefined);
  const plain = [...new Set(known.flatMap(spellings))].sort((a, b) => b.length - a.length);
  const patterns = known.flatMap(escapedPattern);
  return (text) => {
    const unescaped = patterns.reduce((masked, pattern) => masked.replace(pattern, MASK), text);
    return plain.reduce((masked, secret) => masked.replaceAll(secret, MASK), unescaped);
  };
}

/** Minimum length of a masked secret. Shorter ones would mask parts of many ordinary words. */
export const SHORTEST_MASKED = 6;

/** Other spellings under which a library may print the same secret. */
function spellings(secret: string): string[] {
  const all = [secret, encodeURIComponent(secret), ...hexSpellings(secret)];
  return all.filter((spelling) => spelling.length >= SHORTEST_MASKED);
}

/**
 * Matches a secret that is escaped by JSON, by `inspect`, or by one inside the other: each adds backslashes.
 */
function escapedPattern(secret: string): RegExp[] {
  if (secret.length < SHORTEST_MASKED || !/["'`\\\n]/.test(secret)) return [];
  const source = secret.replace(/\W/gu, (character) => {
    if (character === '\n') return '(?:\\n|\\\\+n)';
    if (character === '\\') return '\\\\+';
    const itself = `\\u{${character.codePointAt(0)?.toString(16)}}`;
    return /["'`]/.test(character) ? `\\\\*${itself}` : itself;
  });
  return [new RegExp(source, 'gu')];
}

/** Hex digits may be printed in either case, with or without 0x. */
function hexSpellings(secret: string): string[] {
  const digits = /^(?:0x)?([0-9a-f]+)$/i.exec(secret)?.[1];
  return digits === undefined ? [] : [digits, digits.toLowerCase(), digits.toUpperCase()];
}

/** A URL for a log: without user, password, path and query, each of which carries a key at some provider. */
export function printableUrl(url: string): string {
  const { protocol, host, pathname, search } = new URL(url);
  return `${protocol}//${host}${pathname.length > 1 || search ? '/…' : ''}`;
}

/**
 * The parts of a URL that must not be printed: everything beyond its host, as a whole and in those parts that
 * are long enough to be recognised, both as written and as sent. A text that is not a URL is a secret as a
 * whole: it may be a mistyped URL.
 */
export function secretPartsOf(url: string): string[] {
  if (!URL.canParse(url)) return [url, ...url.split(/[/?&=@:#\s]+/).filter(looksLikeKey)];
  const { username, password, pathname, search, searchParams, href } = new URL(url);
  if (username + password + pathname.slice(1) + search === '') return [];
  const values = [...searchParams].flatMap(([name, value]) =>
    SECRET_NAME.test(name) || looksLikeKey(value) ? value : [],
  );
  const segments = pathname.split('/').filter(looksLikeKey);
  const written = [username, password, ...segments, search.slice(1), ...values];
  const parts = [
    url,
    href,
    ...written,
    ...written.map(percentDecoded),
    ...basicCredentials(username, password),
  ];
  return [...new Set(parts)].filter((part) => part !== '');
}

/** Names of headers and of parameters whose values are keys. */
export const SECRET_NAME = /auth|cookie|key|pass|secret|signature|token/i;

/** Whether a text is more likely a key than a word: long, or mixed letters and digits. */
function looksLikeKey(text: string): boolean {
  return text.length >= 16 || (text.length >= 8 && /\d/.test(text) && /[a-z]/i.test(text));
}

/** Credentials as in the Authorization header. Some clients do not decode them first. */
function basicCredentials(username: string, password: string): string[] {
  if (username + password === '') return [];
  const written = `${username}:${password}`;
  const meant = `${percentDecoded(username)}:${percentDecoded(password)}`;
  return [written, meant].map((credentials) => Buffer.from(credentials).toString('base64'));
}

/** The text that a part of a URL stands for; a `%` that encodes nothing stands for itself. */
export function percentDecoded(part: string): string {
  return orUndefined(() => decodeURIComponent(part)) ?? part;
}

/**
 * Splits a URL into the URL without user and password, and the value of the Authorization header. The latter
 * is undefined if the URL has neither.
 */
export function splitCredentials(url: string): { url: string; authorization: string | undefined } {
  const bare = new URL(url);
  const { username, password } = bare;
  if (username + password === '') return { url, authorization: undefined };
  bare.username = '';
  bare.password = '';
  const credentials = Buffer.from(`${percentDecoded(username)}:${percentDecoded(password)}`);
  return { url: bare.href, authorization: `Basic ${credentials.toString('base64')}` };
}
