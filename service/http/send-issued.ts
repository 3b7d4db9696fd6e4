import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { DocumentBytes } from '../journal/issuance';

const HEAD = Buffer.from('{"signedW3CDocument":');

/**
 * Answers 200 with an issued document: `{"signedW3CDocument": …, "txHash": "0x…"}`, streamed without copying
 * or parsing the document, which is JSON already. Reading stops when the client disconnects. When reading
 * fails half-way, Koa cuts the connection, which is the only possible signal by then.
 */
export function sendIssued(ctx: Context, { length, parts }: DocumentBytes, txHash: string): void {
  const tail = Buffer.from(`,"txHash":${JSON.stringify(txHash)}}`);
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield HEAD;
    yield* parts;
    yield tail;
  }
  ctx.status = 200;
  ctx.type = 'application/json; charset=utf-8';
  if (ctx.method !== 'HEAD') ctx.body = Readable.from(chunks(), { objectMode: false });
  ctx.length = HEAD.length + length + tail.length;
}
