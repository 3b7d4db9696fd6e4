import { createHash } from 'node:crypto';
import type { Middleware } from 'koa';
import { readContextFile } from '../../base/published-files';

/**
 * A published file never changes: a new revision gets a new file name (docs/specification.md 6.2).
 */
const ONE_YEAR_IMMUTABLE = 'public, max-age=31536000, immutable';

/**
 * Serves a context or schema of the service, byte for byte. A conditional request for an unchanged file gets
 * 304 (RFC 9110, section 13.1.2).
 */
export function publishedFile(fileName: string, mediaType: string): Middleware {
  const bytes = readContextFile(fileName);
  const etag = createHash('sha256').update(bytes).digest('base64url');
  return (ctx) => {
    ctx.set('Cache-Control', ONE_YEAR_IMMUTABLE);
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
