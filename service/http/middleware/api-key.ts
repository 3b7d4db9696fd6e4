import { createHash, timingSafeEqual } from 'node:crypto';
import type { Middleware } from 'koa';
import { HttpError } from './errors';

/** The scheme is case-insensitive, and one or more spaces follow it (RFC 9110, section 11). */
const BEARER = /^bearer +/i;

/**
 * Requires `Authorization: Bearer <API_KEY>` when a key is configured. The comparison takes constant time.
 */
export function requireApiKey(apiKey: string | undefined): Middleware {
  return async (ctx, next) => {
    const credentials = ctx.get('Authorization').replace(BEARER, 'Bearer ');
    if (apiKey !== undefined && !sameText(credentials, `Bearer ${apiKey}`)) {
      ctx.set('WWW-Authenticate', 'Bearer');
      const message = 'This endpoint needs the header Authorization: Bearer <API_KEY>.';
      throw new HttpError(401, 'API_KEY_WRONG', message);
    }
    await next();
  };
}

function sameText(left: string, right: string): boolean {
  return timingSafeEqual(sha256(left), sha256(right));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
