import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Middleware } from 'koa';
import { PROJECT_ROOT } from '../../project-root';

/** A published context never changes: a new revision gets a new file name (the document, "Hosting the custom context"). */
const ONE_YEAR_IMMUTABLE = 'public, max-age=31536000, immutable';

/** Serves one of our own contexts, byte for byte, as JSON-LD. */
export function context(fileName: string): Middleware {
  const bytes = readFileSync(join(PROJECT_ROOT, 'contexts', fileName));
  return (ctx) => {
    ctx.type = 'application/ld+json';
    ctx.set('Cache-Control', ONE_YEAR_IMMUTABLE);
    ctx.body = bytes;
  };
}
