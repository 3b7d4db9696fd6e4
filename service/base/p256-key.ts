import { createECDH } from 'node:crypto';

/** The bytes of a P-256 coordinate, and of a secret key. */
export const P256_BYTES = 32;
/** The multicodec prefix of a public key in a Multikey (https://www.w3.org/TR/controller-document/#Multikey). */
export const P256_PUBLIC_PREFIX = Buffer.from([0x80, 0x24]);

/** A P-256 key pair. */
export interface P256Key {
  secret: Buffer;
  /** A byte of form, x and y. */
  point: Buffer;
  /** A byte for the parity of y, and x. */
  compressed: Buffer;
}

/**
 * Makes a key pair by ECDH. Node.js 20 may deadlock after `generateKeyPair`: garbage collection that starts
 * during the export of the new key waits for the lock that the export holds. The thread then hangs for ever,
 * once in some thousands of keys.
 */
export function newP256Key(): P256Key {
  const pair = createECDH('prime256v1');
  const point = pair.generateKeys();
  // ECDH leaves out leading zeros, and RFC 7518 (section 6.2.2.1) requires them.
  const secret = Buffer.from(pair.getPrivateKey('hex').padStart(2 * P256_BYTES, '0'), 'hex');
  return { secret, point, compressed: pair.getPublicKey(null, 'compressed') };
}
