import { createPublicKey, verify, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';

/** Names of the headers, in the spelling of Node.js. */
export const SIGNATURE_HEADER = 'x-service-signature';
export const KEY_ID_HEADER = 'x-service-key-id';
const PREFIX = 'ed25519=';
const SIGNATURE_BYTES = 64;

/** Anybody can send requests with an unknown key id: they must not make the receiver fetch at each. */
const SHORTEST_MS_BETWEEN_FETCHES = 10_000;
/** A key that the service has withdrawn is refused after this time. */
const KEPT_FOR_MS = 10 * 60_000;
const FETCH_WITHIN_MS = 5_000;
/**
 * Node.js tries the addresses of a host one after the other. By default it gives each but the last up after
 * 250 ms, which is too early for a distant host.
 */
const CONNECTING = { autoSelectFamilyAttemptTimeout: FETCH_WITHIN_MS / 2 };
/** The service publishes two keys at most, in less than one kilobyte. */
const LARGEST_JWKS_BYTES = 64 * 1024;

/**
 * The public key that verifies a delivery with this X-Service-Key-Id; undefined if the service has none.
 *
 * @throws Error if the keys cannot be fetched.
 */
export type FindKey = (keyId: string | string[] | undefined) => Promise<KeyObject | undefined>;

/**
 * Whether the service signed exactly these bytes.
 *
 * @param body as it arrived. JSON that was parsed and serialised again has other bytes.
 * @throws Error if the keys cannot be fetched.
 */
export async function isGenuine(
  headers: http.IncomingHttpHeaders,
  body: Buffer,
  findKey: FindKey,
): Promise<boolean> {
  const publicKey = await findKey(headers[KEY_ID_HEADER]);
  return publicKey !== undefined && verifySignature(headers[SIGNATURE_HEADER], body, publicKey);
}

/**
 * Whether `header` (`ed25519=<base64url>`) is the signature of these bytes. False, never an exception, for a
 * header that is missing, repeated or malformed.
 */
export function verifySignature(
  header: string | string[] | undefined,
  body: Buffer,
  publicKey: KeyObject,
): boolean {
  if (typeof header !== 'string' || !header.startsWith(PREFIX)) return false;
  const encoded = header.slice(PREFIX.length);
  const signature = Buffer.from(encoded, 'base64url');
  // Node.js accepts missing padding and skips characters that are not base64url. Encoding again shows whether
  // it skipped any.
  const isExact = signature.toString('base64url') === encoded.replace(/={0,2}$/, '');
  return isExact && signature.length === SIGNATURE_BYTES && verify(null, body, publicKey, signature);
}

/** The service's only key. It verifies every delivery, whatever key id that names. */
export function onlyKey(publicKey: KeyObject): FindKey {
  return async () => publicKey;
}

/**
 * The keys that the service publishes at a URL. They are fetched for the first delivery, for a key id that is
 * not known, and when they are old. Old keys that cannot be fetched again stay in use: deliveries must not
 * stop when only the page of the keys is unavailable.
 *
 * @param now milliseconds since any time, never going back.
 */
export function publishedKeys(url: string, now: () => number = () => performance.now()): FindKey {
  let keys = new Map<string, KeyObject>();
  let fetchedAt = -Infinity;
  let lastFetchAt = -Infinity;
  let lastFetch: Promise<void> = Promise.resolve();

  /** Deliveries that need the keys at the same time, or shortly after, share one fetch and its outcome. */
  function refresh(): Promise<void> {
    if (now() - lastFetchAt >= SHORTEST_MS_BETWEEN_FETCHES) {
      lastFetchAt = now();
      lastFetch = fetchJwks(url).then((fetched) => {
        keys = fetched;
        fetchedAt = now();
      });
    }
    return lastFetch;
  }

  return async (keyId) => {
    if (typeof keyId !== 'string') return undefined;
    const known = keys.get(keyId);
    if (known && now() - fetchedAt < KEPT_FOR_MS) return known;
    try {
      await refresh();
    } catch (error) {
      if (known) return known;
      throw error;
    }
    return keys.get(keyId);
  };
}

/** Fetches a JWK Set (RFC 7517), and returns its Ed25519 keys by their `kid`. */
async function fetchJwks(url: string): Promise<Map<string, KeyObject>> {
  try {
    const { get, Agent } = url.startsWith('https:') ? https : http;
    const agent = new Agent(CONNECTING);
    const headers = { accept: 'application/json', 'accept-encoding': 'identity' };
    const request = get(url, { agent, headers, signal: AbortSignal.timeout(FETCH_WITHIN_MS) });
    // After the response, an error of the request is one of the answer too.
    request.on('error', () => undefined);
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    let text = '';
    for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>)
      if ((text += chunk).length > LARGEST_JWKS_BYTES)
        throw new Error(`the answer is larger than ${LARGEST_JWKS_BYTES} bytes`);
    const { statusCode: status = 0 } = answer;
    // A redirect could lead to keys that the operator of this receiver did not choose.
    if (status >= 300 && status < 400) throw new Error('the answer is a redirect, which is not followed');
    if (status !== 200) throw new Error(`the answer is ${status}`);
    const { keys } = (JSON.parse(text) ?? {}) as { keys?: unknown };
    if (!Array.isArray(keys)) throw new Error('the answer is not a JWK Set');
    return new Map(keys.flatMap(keyOf));
  } catch (cause) {
    throw new Error(`The keys at ${url} cannot be fetched: ${reasonOf(cause)}`, { cause });
  }
}

/** The id and the key of a JWK; nothing if it is not an Ed25519 key with an id, or malformed. */
function keyOf(jwk: unknown): [string, KeyObject][] {
  const { kty, crv, x, kid } = (jwk ?? {}) as Record<string, unknown>;
  if (kty !== 'OKP' || crv !== 'Ed25519' || typeof x !== 'string' || typeof kid !== 'string') return [];
  try {
    return [[kid, createPublicKey({ key: { kty, crv, x }, format: 'jwk' })]];
  } catch {
    return [];
  }
}

/**
 * The TypeError of `fetch` and an AbortError have the reason as their cause. Several addresses that cannot be
 * reached have a code only.
 */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const isWrapped = thrown instanceof TypeError || thrown.name === 'AbortError';
  if (isWrapped && thrown.cause instanceof Error) return reasonOf(thrown.cause);
  return thrown.message || ('code' in thrown ? String(thrown.code) : thrown.name);
}
