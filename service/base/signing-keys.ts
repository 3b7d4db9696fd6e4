import type { KeyObject } from 'node:crypto';
import { publicJwkOf, type PublicJwk } from './public-jwk';

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
