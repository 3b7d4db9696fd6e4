import type { Context } from 'koa';
import { HttpError } from './middleware/errors';

/** The document's limit for every JSON body: 50 MB, attachments included. */
export const LIMIT_BYTES = 50 * 1024 * 1024;

/**
 * The error for a longer one. The rest of it is read and dropped, so that the caller can finish sending and
 * read the answer.
 */
export function tooLarge(ctx: Context): HttpError {
  ctx.set('Connection', 'close');
  ctx.req.unpipe();
  ctx.req.resume();
  return new HttpError(413, 'BODY_TOO_LARGE', 'The body is larger than 50 MB.');
}
