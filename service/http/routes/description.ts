import type { Middleware } from 'koa';
import { openApi } from '../description/openapi';
import { referencePage } from '../description/reference-page';
import { cacheable } from './cacheable';

/** Not longer, because a later version of the service may describe other operations. */
const ONE_HOUR = 'public, max-age=3600';

const POLICY = [
  "default-src 'none'; style-src 'unsafe-inline'",
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
].join('; ');

/** GET /openapi.json: the OpenAPI description of this API. */
export const openApiDocument = madeOnce(() =>
  cacheable(Buffer.from(JSON.stringify(openApi())), 'application/json', ONE_HOUR),
);

/** GET /docs: the description as a page. It has no script, and loads nothing. */
export const reference = madeOnce((): Middleware => {
  const page = cacheable(Buffer.from(referencePage(openApi())), 'text/html; charset=utf-8', ONE_HOUR);
  return async (ctx, next) => {
    ctx.set('Content-Security-Policy', POLICY);
    ctx.set('X-Content-Type-Options', 'nosniff');
    await page(ctx, next);
  };
});

/** Makes it at the first request: most processes are never asked. */
function madeOnce(make: () => Middleware): Middleware {
  let made: Middleware | undefined;
  return async (ctx, next) => {
    await (made ??= make())(ctx, next);
  };
}
