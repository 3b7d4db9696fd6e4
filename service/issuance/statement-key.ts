import { generateKeyPairSync, sign } from 'node:crypto';

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

const P256_PUBLIC_KEY = [0x80, 0x24];

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
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const isOdd = (Buffer.from(y, 'base64url').at(-1) ?? 0) % 2 === 1;
  return {
    publicKey: Uint8Array.from([...P256_PUBLIC_KEY, isOdd ? 3 : 2, ...Buffer.from(x, 'base64url')]),
    sign: (data) => sign('sha256', data, { key: privateKey, dsaEncoding: 'ieee-p1363' }),
  };
}
