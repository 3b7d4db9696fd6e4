import type { Context, Middleware } from 'koa';

/**
 * Headers of every response (docs/specification.md 5.2). Scripts of another origin can read only the
 * service's headers that are exposed here.
 */
export const CORS_HEADERS = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Headers': 'Origin, X-Requested-With, Content-Type, Accept',
  'Access-Control-Expose-Headers': 'X-Error-Code, X-Request-Id, X-Token-Id, Retry-After',
} as const;

/** The common beginning of the paths of the console. */
export const CONSOLE = '/console';

/** Whether a path is one of the console, in any case: a router may not tell cases apart. */
export function isOfConsole(path: string): boolean {
  return `${path.toLowerCase()}/`.startsWith(`${CONSOLE}/`);
}

/** Headers of every answer to the console's page: it is for that page alone, and nothing keeps it. */
export const CONSOLE_HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

/** Sets the headers of all responses. Those of the console have no cross-origin headers. Answers OPTIONS. */
export const cors: Middleware = async (ctx, next): Promise<void> => {
  if (isOfConsole(pathOf(ctx))) {
    ctx.set(CONSOLE_HEADERS);
    await next();
    return;
  }
  ctx.set(CORS_HEADERS);
  if (ctx.method !== 'OPTIONS') {
    await next();
    return;
  }
  ctx.set('Access-Control-Allow-Methods', 'GET, HEAD, POST, OPTIONS');
  ctx.status = 204;
};

/** The path of any form of target (RFC 9112, section 3.2). Koa's ctx.path throws for one that is no URL. */
function pathOf(ctx: Context): string {
  try {
    return ctx.path;
  } catch {
    return '';
  }
}
