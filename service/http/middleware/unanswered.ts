import type { Middleware } from 'koa';
import { HttpError } from './errors';

/**
 * Turns a request that no route answered into an error. If the router knows the path, it leaves 405 or 501,
 * with the path's methods in `Allow`.
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
