import type { Middleware } from 'koa';

/**
 * Headers of every response (docs/specification.md 5.2). Scripts of another origin can read only the
 * service's headers that are exposed here.
 */
export const CORS_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': 'Origin, X-Requested-With, Content-Type, Accept',
  'Access-Control-Expose-Headers': 'X-Error-Code, X-Request-Id, X-Token-Id, Retry-After',
} as const;

/** Sets the cross-origin headers on every response, and answers OPTIONS. */
export const cors: Middleware = async (ctx, next): Promise<void> => {
  ctx.set(CORS_HEADERS);
  if (ctx.method !== 'OPTIONS') {
    await next();
    return;
  }
  ctx.set('Access-Control-Allow-Methods', 'GET, HEAD, POST, OPTIONS');
  ctx.status = 204;
};
