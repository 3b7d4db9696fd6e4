import type { Middleware } from 'koa';
import { HttpError } from './errors';

/**
 * Turns what no route answered into an error. The router leaves 405 or 501 with the methods of the path in
 * `Allow`, if it knows the path.
 */
export const unanswered: Middleware = async (ctx, next) => {
  await next();
  const isUnanswered = ctx.status === 404 || ctx.status === 405 || ctx.status === 501;
  if (!isUnanswered) return;
  if (ctx.response.get('Allow')) {
    throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'This path does not answer that method.');
  }
  ctx.remove('Allow');
  throw new HttpError(404, 'NOT_FOUND', 'There is nothing at this path.');
};
