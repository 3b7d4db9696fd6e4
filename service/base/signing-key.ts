import { createPrivateKey, type KeyObject } from 'node:crypto';

/** RFC 8410: what comes before the 32-byte seed in the PKCS#8 form of an Ed25519 private key. */
const PKCS8_ED25519_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED_BYTES = 32;

/**
 * SIGNING_PRIVATE_KEY as a key: either the base64 of a 32-byte raw seed, wrapped in PKCS#8 here, or a PKCS#8
 * PEM (docs/specification.md 1.7). A PEM on one line with `\n` written out is accepted too. Returns
 * undefined for anything else.
 */
export function parseSigningKey(text: string): KeyObject | undefined {
  try {
    const key = text.includes('-----BEGIN')
      ? createPrivateKey(text.replaceAll('\\n', '\n'))
      : keyOfSeed(Buffer.from(text, 'base64'));
    return key?.asymmetricKeyType === 'ed25519' ? key : undefined;
  } catch {
    return undefined;
  }
}

function keyOfSeed(seed: Buffer): KeyObject | undefined {
  if (seed.length !== SEED_BYTES) return undefined;
  return createPrivateKey({ key: Buffer.concat([PKCS8_ED25519_PREFIX, seed]), format: 'der', type: 'pkcs8' });
}
