import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { IssuedAnswer } from '../issuance/issued-answer';

/**
 * Answers 200 with an issued document, streamed. Reading stops when the client disconnects. When reading
 * fails half-way, Koa cuts the connection, which is the only possible signal by then.
 */
export function sendIssued(ctx: Context, { length, chunks }: IssuedAnswer): void {
  ctx.status = 200;
  ctx.type = 'application/json; charset=utf-8';
  if (ctx.method === 'HEAD') {
    ctx.length = length;
    return;
  }
  ctx.body = Readable.from(chunks, { objectMode: false });
  ctx.length = length;
}
