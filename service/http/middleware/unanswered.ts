import type { Middleware } from 'koa';
import { HttpError } from './errors';

/** Turns what no route answered into an error: the router leaves 405 or 501 with `Allow` for a path it knows, 404 for any other. */
export const unanswered: Middleware = async (ctx, next) => {
  await next();
  if (ctx.status === 405 || ctx.status === 501) {
    throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'This path does not answer that method.');
  }
  if (ctx.status === 404) throw new HttpError(404, 'NOT_FOUND', 'There is nothing at this path.');
};
