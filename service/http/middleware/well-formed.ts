import type { Middleware } from 'koa';
import { HttpError } from './errors';

/**
 * Refuses a request whose target cannot be read, and an HTTP/1.1 request without Host (RFC 9112, section
 * 3.2). The router would use malformed percent-encoding as literal text.
 */
export const wellFormed: Middleware = async (ctx, next) => {
  if (ctx.req.httpVersion === '1.1' && ctx.req.headers.host === undefined)
    throw new HttpError(400, 'REQUEST_MALFORMED', 'The request has no header Host.');
  if (!isDecodable(() => ctx.path)) {
    const message = 'The path has malformed percent-encoding, or is no path. Write % as %25.';
    throw new HttpError(400, 'PATH_MALFORMED', message);
  }
  await next();
};

/** `path` is a function because Koa's ctx.path throws for a target that is not a URL. */
function isDecodable(path: () => string): boolean {
  try {
    decodeURIComponent(path());
    return true;
  } catch {
    return false;
  }
}
