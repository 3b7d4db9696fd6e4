import { createECDH } from 'node:crypto';
import { decodeBase58, encodeBase58, toBeArray } from 'ethers';

/** Multicodec prefixes of P-256 keys in a Multikey (https://www.w3.org/TR/controller-document/#Multikey). */
const SECRET_PREFIX = Buffer.from([0x86, 0x26]);
const PUBLIC_PREFIX = Buffer.from([0x80, 0x24]);
const SECRET_BYTES = 32;

/** A new P-256 secret key, in multibase. */
export function newSecretKey(): string {
  const pair = createECDH('prime256v1');
  pair.generateKeys();
  // ECDH leaves out leading zeros.
  const secret = pair.getPrivateKey('hex').padStart(2 * SECRET_BYTES, '0');
  return `z${encodeBase58(Buffer.concat([SECRET_PREFIX, Buffer.from(secret, 'hex')]))}`;
}

/** The public key of a P-256 secret key, both in multibase. Undefined if the secret key is damaged. */
export function publicKeyOf(secretKeyMultibase: string): string | undefined {
  try {
    const bytes = Buffer.from(toBeArray(decodeBase58(secretKeyMultibase.slice(1))));
    if (!bytes.subarray(0, 2).equals(SECRET_PREFIX) || bytes.length !== 34) return undefined;
    const pair = createECDH('prime256v1');
    pair.setPrivateKey(bytes.subarray(2));
    return `z${encodeBase58(Buffer.concat([PUBLIC_PREFIX, pair.getPublicKey(null, 'compressed')]))}`;
  } catch {
    return undefined;
  }
}
