import { createHash, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';

/** The scheme is case-insensitive, and one or more spaces follow it (RFC 9110, section 11). */
const BEARER = /^bearer +/i;

/**
 * Whether the request has `Authorization: Bearer <key>`. The comparison takes the same time for every wrong
 * key. If it has not, the answer gets the header that a 401 needs.
 */
export function hasBearerKey(ctx: Context, key: string): boolean {
  const credentials = ctx.get('Authorization').replace(BEARER, 'Bearer ');
  const isRight = timingSafeEqual(sha256(credentials), sha256(`Bearer ${key}`));
  if (!isRight) ctx.set('WWW-Authenticate', 'Bearer');
  return isRight;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
