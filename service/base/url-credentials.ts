import { percentDecoded } from './mask-secrets';

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
