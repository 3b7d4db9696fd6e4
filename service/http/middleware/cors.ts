import type { Middleware } from 'koa';

/** Puts the document's two cross-origin headers on every response, and answers OPTIONS (DESIGN section 5). */
export const cors: Middleware = async (ctx, next): Promise<void> => {
  ctx.set('Access-Control-Allow-Origin', '*');
  ctx.set('Access-Control-Allow-Headers', 'Origin, X-Requested-With, Content-Type, Accept');
  if (ctx.method !== 'OPTIONS') {
    await next();
    return;
  }
  ctx.set('Access-Control-Allow-Methods', 'GET, HEAD, POST, OPTIONS');
  ctx.status = 204;
};
