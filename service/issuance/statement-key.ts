import { createECDH, createPrivateKey, sign } from 'node:crypto';

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

const P256_PUBLIC_KEY = Buffer.from([0x80, 0x24]);
const COORDINATE_BYTES = 32;

/**
 * Creates a key with node:crypto. The suite's own key is a WebCrypto key: each signature, 40 for a small
 * document, is then a task for the thread pool and two promises, which cost more than the P-256 operation
 * itself.
 *
 * The pair is made by ECDH, because Node.js 20 may deadlock after `generateKeyPair`: garbage collection that
 * starts during the export of the new key waits for the lock that the export holds. The thread then hangs
 * forever, once in some thousands of documents.
 *
 * Measured (medians of 200 interleaved rounds): a document of 3 packages takes 0.59 of the library's time
 * with this alone. One of 300 packages, which WebCrypto spreads over the processors, takes 0.94 (24 rounds)
 * when these are idle; the signing pool uses them.
 */
export function newStatementKey(): StatementKey {
  const pair = createECDH('prime256v1');
  // One byte of form, then x and y.
  const point = pair.generateKeys();
  // ECDH leaves out leading zeros, and RFC 7518 (section 6.2.2.1) requires them.
  const secret = Buffer.from(pair.getPrivateKey('hex').padStart(2 * COORDINATE_BYTES, '0'), 'hex');
  const x = point.toString('base64url', 1, 1 + COORDINATE_BYTES);
  const y = point.toString('base64url', 1 + COORDINATE_BYTES);
  const jwk = { kty: 'EC', crv: 'P-256', x, y, d: secret.toString('base64url') };
  const key = createPrivateKey({ key: jwk, format: 'jwk' });
  return {
    publicKey: Buffer.concat([P256_PUBLIC_KEY, pair.getPublicKey(null, 'compressed')]),
    sign: (data) => sign('sha256', data, { key, dsaEncoding: 'ieee-p1363' }),
  };
}
