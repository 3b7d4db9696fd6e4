import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createBrotliDecompress, createUnzip } from 'node:zlib';
import type { Context } from 'koa';
import bodyParser from 'koa-bodyparser';
import { RequestError } from '../base/errors';
import { type Time, newDeferred, repeat } from '../base/time';
import type { JsonObject } from '../issuance/credential';
import { checkedBody, jsonObjectOf, parseBody } from '../issuance/parse-body';

/** The limit of every JSON body: 50 MB, attachments included (docs/specification.md 5.3). */
export const LIMIT_BYTES = 50 * 1024 * 1024;

/** A credential is longer than the body that it was made of, and can be checked all the same. */
export const CHECKED_BYTES = LIMIT_BYTES + 4 * 1024 * 1024;

/**
 * A body up to this size is parsed at once and never waits, because the rest of a request takes as much
 * memory.
 */
export const SMALL_BYTES = 64 * 1024;

/** The minimum number of bytes that must arrive in each interval until the body is complete. */
export interface LeastRate {
  /** Received bytes, before decoding. */
  bytes: number;
  /** In milliseconds. */
  withinMs: number;
}

/**
 * A body brings at least so much, so that a small one is complete within ten seconds. Otherwise two bodies of
 * one byte keep all others out for five minutes.
 */
export const LEAST: LeastRate = { bytes: 64 * 1024, withinMs: 10_000 };

const JSON_TYPE = /^application\/([\w.-]+\+)?json$/i;

/**
 * Refuses a body by what its headers declare: a type other than JSON (415), or too many bytes (413). The
 * request has not waited by then, and none of the body is read.
 */
export function checkDeclaredBody(ctx: Context, limit = LIMIT_BYTES): void {
  if (!JSON_TYPE.test(ctx.request.type)) {
    const message = 'The body must be JSON, with Content-Type: application/json.';
    throw new RequestError('CONTENT_TYPE_WRONG', message);
  }
  if ((ctx.request.length ?? 0) <= limit) return;
  dropRest(ctx);
  throw tooLarge(limit);
}

/** The most bytes that the body may have according to its headers; Infinity if they do not tell. */
export function mostBytes({ req: { headers } }: Context): number {
  if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity')
    return Infinity;
  const { 'content-length': length } = headers;
  if (length === undefined) return headers['transfer-encoding'] === undefined ? 0 : Infinity;
  return Number(length);
}

/** Reads a JSON object of at most 64 KB. */
export async function readSmallJson(time: Time, ctx: Context): Promise<JsonObject> {
  checkDeclaredBody(ctx);
  return arrived(time, ctx, smallObject(ctx));
}

/**
 * `onProtoPoisoning` is an option of co-body, the reader of koa-bodyparser. jsonObjectOf refuses `__proto__`.
 */
const OPTIONS: bodyParser.Options & { onProtoPoisoning: 'ignore' } = {
  enableTypes: ['json'],
  // koa-bodyparser knows only some of the +json types. checkDeclaredBody has checked the type already.
  detectJSON: () => true,
  jsonLimit: String(SMALL_BYTES),
  onProtoPoisoning: 'ignore',
};

const parse = bodyParser(OPTIONS);

/**
 * Reads and parses a small body. koa-bodyparser reads an empty body as `{}`, and invalid UTF-8 as U+FFFD. The
 * bytes are therefore checked separately.
 */
async function smallObject(ctx: Context): Promise<JsonObject> {
  // The length of a compressed body is not known before it is decoded.
  if (mostBytes(ctx) > SMALL_BYTES) return parseBody(await readBody(ctx.req, SMALL_BYTES));
  const chunks: Uint8Array[] = [];
  // The parser starts to read in the same turn, so both get every chunk.
  ctx.req.on('data', (chunk: Uint8Array) => chunks.push(chunk));
  try {
    await parse(ctx, async () => undefined);
  } catch (cause) {
    // Invalid JSON is a SyntaxError, and parseBody says where. The other errors come from reading and have a
    // type.
    if (cause instanceof SyntaxError) return parseBody(await joined(chunks));
    const type = cause instanceof Error && 'type' in cause ? cause.type : undefined;
    throw type === 'request.aborted' || type === 'stream.not.readable' ? aborted() : cause;
  }
  const bytes = await joined(chunks);
  if (bytes.length === 0 || !isUtf8(bytes)) return parseBody(bytes);
  return checkedBody(bytes, () => jsonObjectOf(ctx.request.body));
}

/**
 * Waits for a body while it arrives fast enough.
 *
 * @throws RequestError 408 for one that hardly arrives; the errors of the reading.
 */
export async function arrived<T>(
  time: Time,
  ctx: Context,
  reading: Promise<T>,
  { bytes, withinMs }: LeastRate = LEAST,
): Promise<T> {
  const { req } = ctx;
  const { socket } = req;
  let before = socket.bytesRead;
  const tooSlow = newDeferred<never>();
  const look = async (): Promise<void> => {
    // Then the bytes that arrived while this process was busy are read.
    await nextTurn();
    if (!req.complete && socket.bytesRead - before < bytes)
      tooSlow.reject(new RequestError('BODY_TOO_SLOW', 'The body arrives too slowly.'));
    before = socket.bytesRead;
  };
  const looking = repeat(time, look, withinMs, withinMs);
  try {
    return await Promise.race([reading, tooSlow.promise]);
  } catch (error) {
    if (error instanceof RequestError && (error.status === 408 || error.status === 413)) dropRest(ctx);
    throw error;
  } finally {
    void looking.stop();
  }
}

/** Reads and drops the rest of a body, so that the caller can finish sending and read the answer. */
function dropRest(ctx: Context): void {
  ctx.set('Connection', 'close');
  ctx.req.unpipe();
  ctx.req.removeAllListeners('data').resume();
}

/**
 * Reads a request's body and decodes it from its Content-Encoding (gzip, deflate, br). The result shares its
 * memory with nothing, so that it can be transferred to another thread.
 *
 * @param limit most decoded bytes.
 * @param onChunk receives the decoded bytes as they arrive.
 * @throws RequestError 413 over the limit, 400 for a body that is incomplete or wrongly encoded, 415 for an
 *   unknown encoding. The request stays open; the calling code decides about the rest of its body.
 */
export async function readBody(
  request: IncomingMessage,
  limit: number,
  onChunk?: (chunk: Uint8Array) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const source = decoded(request);
  const chunks: Uint8Array[] = [];
  let length = 0;
  let joinedChunks = 0;
  let joinedLength = 0;
  try {
    await new Promise<void>((resolve, reject) => {
      source.on('data', (chunk: Uint8Array) => {
        length += chunk.length;
        if (length > limit) return reject(tooLarge(limit));
        chunks.push(chunk);
        onChunk?.(chunk);
        if (chunks.length - joinedChunks < JOINED_AT_ONCE) return;
        if (length - joinedLength < COPIED_AT_ONCE) chunks.push(Buffer.concat(chunks.splice(joinedChunks)));
        [joinedChunks, joinedLength] = [chunks.length, length];
      });
      source.on('end', resolve);
      const undecodable = 'The body does not decode as its Content-Encoding says.';
      if (source !== request)
        source.on('error', (cause) => reject(new RequestError('BODY_NOT_JSON', undecodable, { cause })));
      // The connection may have closed before the body is read, as when a waiting caller leaves. A body that
      // has arrived whole may still be on its way to the decoder, which then never gets its end.
      if (request.destroyed && !request.readableEnded) reject(aborted());
      request.on('close', () => {
        if (!request.readableEnded) reject(aborted());
      });
    });
  } finally {
    if (source !== request) {
      request.unpipe();
      source.destroy();
    }
    source.removeAllListeners('data');
  }
  return joined(chunks);
}

/**
 * The decoder raises an error for corrupt input, and the request itself goes on. Names of encodings are
 * case-insensitive (RFC 9110, section 8.4.1).
 */
function decoded(request: IncomingMessage): Readable {
  const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (encoding === 'identity') return request;
  if (encoding === 'gzip' || encoding === 'deflate') return request.pipe(createUnzip());
  if (encoding === 'br') return request.pipe(createBrotliDecompress());
  throw new RequestError('CONTENT_ENCODING_UNSUPPORTED', 'Unsupported Content-Encoding.');
}

function tooLarge(limit: number): RequestError {
  const words = limit === SMALL_BYTES ? '64 KB' : `${limit / 1024 / 1024} MB`;
  return new RequestError('BODY_TOO_LARGE', `The body is larger than ${words}.`);
}

/** The error for a caller that leaves while it sends. */
export function aborted(): RequestError {
  return new RequestError('BODY_ABORTED', 'The body ended before it was complete.');
}

/**
 * Bytes copied per turn. Copying 40 MB at once, into memory that the system must first allocate, blocked all
 * other requests for up to 190 ms.
 */
const COPIED_AT_ONCE = 1024 * 1024;

/** A caller may send single bytes. Each takes some 300 bytes until so many are joined to one chunk. */
const JOINED_AT_ONCE = 1_000;

/** Joins chunks in memory that nothing shares, and yields to the event loop between the pieces. */
async function joined(chunks: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let offset = 0;
  let nextPause = COPIED_AT_ONCE;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
    if (offset < nextPause) continue;
    nextPause = offset + COPIED_AT_ONCE;
    await nextTurn();
  }
  return bytes;
}
