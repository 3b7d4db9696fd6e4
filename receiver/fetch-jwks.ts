import { createPublicKey, type KeyObject } from 'node:crypto';

const TIMEOUT_MS = 5_000;
/** The service publishes two keys at most, in less than one kilobyte. */
const LARGEST_BYTES = 64 * 1024;

/**
 * Fetches a JWK Set (RFC 7517) and returns its Ed25519 keys by their `kid`. Other keys are not for webhooks.
 *
 * @throws Error with the URL and the reason.
 */
export async function fetchJwks(url: string): Promise<Map<string, KeyObject>> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    // A redirect could lead to keys that the operator of this receiver did not choose.
    const answer = await fetch(url, { signal, redirect: 'error' });
    const text = await readText(answer);
    if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
    return keysOf(JSON.parse(text));
  } catch (cause) {
    throw new Error(`The keys at ${url} cannot be fetched: ${reasonOf(cause)}`, { cause });
  }
}

async function readText(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > LARGEST_BYTES) throw new Error(`the answer is larger than ${LARGEST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function keysOf(jwks: unknown): Map<string, KeyObject> {
  const { keys } = (jwks ?? {}) as { keys?: unknown };
  if (!Array.isArray(keys)) throw new Error('the answer is not a JWK Set');
  return new Map(keys.flatMap(keyOf));
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

/** `fetch` says "fetch failed" and keeps the reason as the cause. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause instanceof Error ? thrown.cause.message || thrown.message : thrown.message;
}
