import type { Middleware } from 'koa';
import { PUBLISHED_FILES, readContextFile } from '../../base/published-files';
import { cacheable } from './cacheable';

/**
 * A published file never changes: a new revision gets a new file name (docs/specification.md 6.2).
 */
const ONE_YEAR_IMMUTABLE = 'public, max-age=31536000, immutable';

/** Serves the contexts and schemas of the service, byte for byte. */
export function publishedFiles(): Middleware<object, { params: Record<string, string> }> {
  const files = new Map(
    Object.entries(PUBLISHED_FILES).map(([name, mediaType]): [string, Middleware] => [
      name,
      cacheable(readContextFile(name), mediaType, ONE_YEAR_IMMUTABLE),
    ]),
  );
  return async (ctx, next) => {
    await files.get(ctx.params.file ?? '')?.(ctx, next);
  };
}
