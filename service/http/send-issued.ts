import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { IssuedAnswer } from '../issuance/issued-answer';

/**
 * Answers 200 with what was issued, from its bytes. A client that goes away stops the reading; when the
 * reading fails half-way Koa cuts the connection: nothing else says so by then.
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
