import { createPrivateKey, sign } from 'node:crypto';
import { newP256Key, P256_BYTES, P256_PUBLIC_PREFIX } from '../base/p256-key';

/**
 * The key of one credential. It signs each of the credential's statements and is then discarded
 * (https://www.w3.org/TR/vc-di-ecdsa/#ecdsa-sd-2023).
 */
export interface StatementKey {
  /** In Multikey form: two bytes for P-256, then the compressed point. */
  publicKey: Uint8Array;
  /** ECDSA with SHA-256: r and s, 32 bytes each. */
  sign: (data: Uint8Array) => Uint8Array;
}

/**
 * Creates a key with node:crypto. The suite's own key is a WebCrypto key: each signature, 40 for a small
 * document, is then a task for the thread pool and two promises, which cost more than the P-256 operation
 * itself.
 *
 * Measured (medians of 200 interleaved rounds): a document of 3 packages takes 0.59 of the library's time
 * with this alone. One of 300 packages, which WebCrypto spreads over the processors, takes 0.94 (24 rounds)
 * when these are idle; the signing pool uses them.
 */
export function newStatementKey(): StatementKey {
  const { secret, point, compressed } = newP256Key();
  const x = point.toString('base64url', 1, 1 + P256_BYTES);
  const y = point.toString('base64url', 1 + P256_BYTES);
  const jwk = { kty: 'EC', crv: 'P-256', x, y, d: secret.toString('base64url') };
  const key = createPrivateKey({ key: jwk, format: 'jwk' });
  return {
    publicKey: Buffer.concat([P256_PUBLIC_PREFIX, compressed]),
    sign: (data) => sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' }),
  };
}
