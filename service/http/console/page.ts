import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Router } from '@koa/router';
import type { Middleware } from 'koa';
import { PROJECT_ROOT } from '../../base/project-root';
import { HttpError } from '../middleware/errors';
import { cacheable } from '../routes/cacheable';
import { PAGE } from './gate';

const FOLDER = join(PROJECT_ROOT, 'dist/console');
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Another build may have other files under the same names. */
const ASK_AGAIN = 'no-cache';

/** Answers the page and its files. They hold no data, so they need no session. */
export function answerPage(router: Router, folder = FOLDER): void {
  const page = builtFile(join(folder, 'index.html'), 'text/html; charset=utf-8');
  router.get(PAGE.html, async (ctx, next) => {
    ctx.set('Content-Security-Policy', CONTENT_SECURITY_POLICY);
    await page(ctx, next);
  });
  router.get(PAGE.script, builtFile(join(folder, 'app.js'), 'text/javascript; charset=utf-8'));
  router.get(PAGE.style, builtFile(join(folder, 'app.css'), 'text/css; charset=utf-8'));
}

/** Reads the file at its first request, and then keeps it. */
function builtFile(path: string, mediaType: string): Middleware {
  let made: Middleware | undefined;
  return async (ctx, next) => {
    made ??= cacheable(read(path), mediaType, ASK_AGAIN);
    await made(ctx, next);
  };
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    const message = 'The page of the console is not built: run `npm run build`, and restart the service.';
    throw new HttpError(404, 'CONSOLE_NOT_BUILT', message);
  }
}
