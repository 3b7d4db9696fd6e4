import { createHash, createPublicKey, type KeyObject } from 'node:crypto';

/** The public half of an Ed25519 key as a JWK (RFC 8037), for verifying signatures. */
export interface PublicJwk {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  /** The 32 bytes of the public key in base64url. */
  readonly x: string;
  /** The thumbprint of the members above. */
  readonly kid: string;
  readonly use: 'sig';
  readonly alg: 'EdDSA';
}

/** The public JWK of an Ed25519 private key. */
export function publicJwkOf(privateKey: KeyObject): PublicJwk {
  const { x = '' } = createPublicKey(privateKey).export({ format: 'jwk' });
  return { kty: 'OKP', crv: 'Ed25519', x, kid: thumbprintOf(x), use: 'sig', alg: 'EdDSA' };
}

/** RFC 7638: the hash of the required members, sorted by name and without blanks. */
function thumbprintOf(x: string): string {
  return createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url');
}
