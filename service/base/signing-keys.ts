import { orUndefined } from './errors';
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

/** An Ed25519 key that signs webhooks. */
export interface SigningKey {
  readonly privateKey: KeyObject;
  /** The `kid` of its public JWK. */
  readonly id: string;
}

/** The key that signs webhooks, and the key that replaces it. */
export interface SigningKeys {
  readonly key: SigningKey;
  /** `from`: the time from which it signs, in epoch milliseconds, a whole second. */
  readonly next: { readonly key: SigningKey; readonly from: number } | undefined;
}

/**
 * A key as it is published. `nbf` and `exp` are members of our own with the names that JWT gives them, in
 * seconds since the epoch: the key signs nothing before `nbf`, and nothing from `exp` on.
 */
export type PublishedKey = PublicJwk & { readonly nbf?: number; readonly exp?: number };

/** A JWK Set (RFC 7517). */
export interface Jwks {
  readonly keys: readonly PublishedKey[];
}

/** The signing key of a private key. */
export function signingKeyOf(privateKey: KeyObject): SigningKey {
  return { privateKey, id: publicJwkOf(privateKey).kid };
}

/** The key that signs what is sent at this time (epoch milliseconds). */
export function signingKeyAt({ key, next }: SigningKeys, now: number): SigningKey {
  return next !== undefined && now >= next.from ? next.key : key;
}

/** The public keys with their times. Both keys are there before the change and after it. */
export function jwksOf({ key, next }: SigningKeys): Jwks {
  const jwk = publicJwkOf(key.privateKey);
  if (next === undefined) return { keys: [jwk] };
  const changesAt = next.from / 1_000;
  return {
    keys: [
      { ...jwk, exp: changesAt },
      { ...publicJwkOf(next.key.privateKey), nbf: changesAt },
    ],
  };
}

/** The public half of an Ed25519 key as a JWK (RFC 8037), for verifying signatures. */
export type PublicJwk = ReturnType<typeof publicJwkOf>;

/**
 * The public JWK of an Ed25519 private key. `x`: the 32 bytes of the public key in base64url. `kid`: the
 * thumbprint of the required members.
 */
export function publicJwkOf(privateKey: KeyObject) {
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  // RFC 7638: the hash of the required members, sorted by name and without blanks.
  const required = JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x });
  const kid = createHash('sha256').update(required).digest('base64url');
  return { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' } as const;
}

/** RFC 8410: what comes before the 32-byte seed in the PKCS#8 form of an Ed25519 private key. */
const PKCS8_ED25519_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED_BYTES = 32;

/**
 * SIGNING_PRIVATE_KEY as a key: either the base64 of a 32-byte raw seed, wrapped in PKCS#8 here, or a PKCS#8
 * PEM (docs/specification.md 1.7). A PEM on one line with `\n` written out is accepted too. Returns
 * undefined for anything else.
 */
export function parseSigningKey(text: string): KeyObject | undefined {
  const isPem = text.includes('-----BEGIN');
  const seed = Buffer.from(text, 'base64');
  if (!isPem && seed.length !== SEED_BYTES) return undefined;
  const ofSeed = { key: Buffer.concat([PKCS8_ED25519_PREFIX, seed]), format: 'der', type: 'pkcs8' } as const;
  const key = orUndefined(() => createPrivateKey(isPem ? text.replaceAll('\\n', '\n') : ofSeed));
  return key?.asymmetricKeyType === 'ed25519' ? key : undefined;
}
