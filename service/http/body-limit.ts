import type { Context } from 'koa';
import { HttpError } from './middleware/errors';

/** The limit of every JSON body: 50 MB, attachments included (docs/specification.md 5.3). */
export const LIMIT_BYTES = 50 * 1024 * 1024;

/**
 * A body up to this size is parsed at once and never waits, because the rest of a request takes as much
 * memory.
 */
export const SMALL_BYTES = 64 * 1024;

/** The most bytes that the body may have according to its headers; Infinity if they do not tell. */
export function mostBytes({ req: { headers } }: Context): number {
  if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity')
    return Infinity;
  const { 'content-length': length } = headers;
  if (length === undefined) return headers['transfer-encoding'] === undefined ? 0 : Infinity;
  return Number(length);
}

/**
 * The error for a body over the limit. The rest of the body is read and dropped, so that the caller can
 * finish sending and read the answer.
 */
export function tooLarge(ctx: Context, limit = '50 MB'): HttpError {
  ctx.set('Connection', 'close');
  ctx.req.unpipe();
  ctx.req.resume();
  return new HttpError(413, 'BODY_TOO_LARGE', `The body is larger than ${limit}.`);
}
