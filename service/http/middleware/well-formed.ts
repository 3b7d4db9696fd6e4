import type { Middleware } from 'koa';
import { HttpError } from './errors';

/**
 * Refuses a request whose target cannot be read, an HTTP/1.1 request without Host, and any with several (RFC
 * 9112, section 3.2). The router would use malformed percent-encoding as literal text. The character NUL has
 * no use in a path, and PostgreSQL refuses text that has it.
 */
export const wellFormed: Middleware = async (ctx, next) => {
  const hosts = ctx.req.headersDistinct.host ?? [];
  if (hosts.length > 1)
    throw new HttpError(400, 'REQUEST_MALFORMED', 'The request has the header Host more than once.');
  if (ctx.req.httpVersion === '1.1' && hosts.length === 0)
    throw new HttpError(400, 'REQUEST_MALFORMED', 'The request has no header Host.');
  const path = decoded(() => ctx.path);
  if (path === undefined) {
    const message = 'The path has malformed percent-encoding, or is no path. Write % as %25.';
    throw new HttpError(400, 'PATH_MALFORMED', message);
  }
  if (path.includes('\0'))
    throw new HttpError(400, 'PATH_MALFORMED', 'The path has the character NUL (%00): leave it out.');
  await next();
};

/** `path` is a function because Koa's ctx.path throws for a target that is not a URL. */
function decoded(path: () => string): string | undefined {
  try {
    return decodeURIComponent(path());
  } catch {
    return undefined;
  }
}
