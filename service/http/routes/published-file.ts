import type { Middleware } from 'koa';
import { PUBLISHED_FILES, readContextFile } from '../../base/published-files';
import { cacheable } from './cacheable';

/**
 * A published file never changes: a new revision gets a new file name (docs/specification.md 6.2).
 */
const ONE_YEAR_IMMUTABLE = 'public, max-age=31536000, immutable';

/** Serves a context or schema of the service, byte for byte. */
export function publishedFile(fileName: string): Middleware {
  return cacheable(readContextFile(fileName), PUBLISHED_FILES[fileName] ?? '', ONE_YEAR_IMMUTABLE);
}
