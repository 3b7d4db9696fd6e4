import type { Middleware } from 'koa';

/** The document's two cross-origin headers. Every response carries them. */
export const CORS_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': 'Origin, X-Requested-With, Content-Type, Accept',
} as const;

/** Puts the cross-origin headers on every response, and answers OPTIONS (DESIGN section 5). */
export const cors: Middleware = async (ctx, next): Promise<void> => {
  ctx.set(CORS_HEADERS);
  if (ctx.method !== 'OPTIONS') {
    await next();
    return;
  }
  ctx.set('Access-Control-Allow-Methods', 'GET, HEAD, POST, OPTIONS');
  ctx.status = 204;
};
