import type { Middleware } from 'koa';
import { jwksOf, type SigningKeys } from '../../base/signing-keys';
import { HttpError } from '../middleware/errors';

/** Short: a receiver that meets a new key id asks again, and must not get an earlier answer for long. */
const ONE_MINUTE = 'public, max-age=60';

/**
 * GET /.well-known/jwks.json: the public keys that verify webhooks, as a JWK Set (RFC 7517). It names the
 * time of a change, so its content does not change with time.
 */
export function jwks(signingKeys: SigningKeys | undefined): Middleware {
  if (signingKeys === undefined)
    return () => {
      const message = 'This service signs no webhooks: SIGNING_PRIVATE_KEY is not configured.';
      throw new HttpError(404, 'SIGNING_KEY_MISSING', message);
    };
  const published = jwksOf(signingKeys);
  return (ctx) => {
    ctx.body = published;
    ctx.type = 'application/jwk-set+json';
    ctx.set('Cache-Control', ONE_MINUTE);
  };
}
