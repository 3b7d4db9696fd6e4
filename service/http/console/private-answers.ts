import type { Middleware } from 'koa';
import { isOfConsole } from './gate';

/** Headers of every answer of the console: it is for its own page alone, and nothing keeps it. */
const HEADERS = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
};

/** Sets the headers of the console's answers. Those of other paths get the headers of `others`. */
export function privateAnswers(others: Middleware): Middleware {
  return async (ctx, next) => {
    if (!isOfConsole(pathOf(() => ctx.path))) {
      await others(ctx, next);
      return;
    }
    ctx.set(HEADERS);
    await next();
  };
}

/** `path` is a function because Koa's ctx.path throws for a target that is not a URL. */
function pathOf(path: () => string): string {
  try {
    return path();
  } catch {
    return '';
  }
}
