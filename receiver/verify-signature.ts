import { verify, type KeyObject } from 'node:crypto';

/** Name of the signature's header, in the spelling of Node.js. */
export const SIGNATURE_HEADER = 'x-service-signature';

const PREFIX = 'ed25519=';
const SIGNATURE_BYTES = 64;

/**
 * Whether `header` (`ed25519=<base64url>`) is the sender's signature over exactly these bytes. False, never
 * an exception, for a header that is missing, repeated or malformed.
 *
 * `rawBody` must be the bytes as they were received. JSON that was parsed and serialised again has other
 * bytes and does not verify.
 */
export function verifySignature(
  header: string | string[] | undefined,
  rawBody: Buffer,
  publicKey: KeyObject,
): boolean {
  if (typeof header !== 'string' || !header.startsWith(PREFIX)) return false;
  const encoded = header.slice(PREFIX.length);
  const signature = Buffer.from(encoded, 'base64url');
  // Node.js accepts missing padding and skips characters that are not base64url. Encoding again shows whether
  // it skipped any.
  const isExact = signature.toString('base64url') === encoded.replace(/={0,2}$/, '');
  return isExact && signature.length === SIGNATURE_BYTES && verify(null, rawBody, publicKey, signature);
}
