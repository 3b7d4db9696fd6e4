import { createECDH } from 'node:crypto';
import { decodeBase58, encodeBase58, toBeArray } from 'ethers';
import { newP256Key, P256_PUBLIC_PREFIX } from '../../service/base/p256-key';

/** The multicodec prefix of a secret key in a Multikey (https://www.w3.org/TR/controller-document/#Multikey). */
const SECRET_PREFIX = Buffer.from([0x86, 0x26]);

/** A new P-256 secret key, in multibase. */
export function newSecretKey(): string {
  return `z${encodeBase58(Buffer.concat([SECRET_PREFIX, newP256Key().secret]))}`;
}

/** The public key of a P-256 secret key, both in multibase. Undefined if the secret key is damaged. */
export function publicKeyOf(secretKeyMultibase: string): string | undefined {
  try {
    const bytes = Buffer.from(toBeArray(decodeBase58(secretKeyMultibase.slice(1))));
    if (!bytes.subarray(0, 2).equals(SECRET_PREFIX) || bytes.length !== 34) return undefined;
    const pair = createECDH('prime256v1');
    pair.setPrivateKey(bytes.subarray(2));
    return `z${encodeBase58(Buffer.concat([P256_PUBLIC_PREFIX, pair.getPublicKey(null, 'compressed')]))}`;
  } catch {
    return undefined;
  }
}
