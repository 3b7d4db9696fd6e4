import type { Context } from 'koa';
import { HttpError } from './middleware/errors';

/** The limit of every JSON body: 50 MB, attachments included (docs/specification.md 5.3). */
export const LIMIT_BYTES = 50 * 1024 * 1024;

/** A body of this size is parsed at once, and never waits: what else a request takes is as much as it is. */
export const SMALL_BYTES = 64 * 1024;

/** The most bytes that the body may have, as far as its headers tell. */
export function mostBytes({ req: { headers } }: Context): number {
  if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity')
    return Infinity;
  const { 'content-length': length } = headers;
  if (length === undefined) return headers['transfer-encoding'] === undefined ? 0 : Infinity;
  return Number(length);
}

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
