import { createHash } from 'node:crypto';
import type { Middleware } from 'koa';

/**
 * Serves bytes that are the same while the service runs. A conditional request for unchanged bytes gets 304
 * (RFC 9110, section 13.1.2).
 */
export function cacheable(bytes: Buffer, mediaType: string, cacheControl: string): Middleware {
  const etag = createHash('sha256').update(bytes).digest('base64url');
  return (ctx) => {
    ctx.set('Cache-Control', cacheControl);
    ctx.etag = etag;
    ctx.status = 200;
    if (ctx.fresh) {
      ctx.status = 304;
      return;
    }
    ctx.type = mediaType;
    ctx.body = bytes;
  };
}
