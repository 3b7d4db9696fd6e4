import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createBrotliDecompress, createUnzip } from 'node:zlib';
import type { Context, Middleware } from 'koa';
import { HttpError } from './middleware/errors';

/** The reason why a body could not be read. */
export class BodyProblem extends Error {
  readonly problem: 'aborted' | 'too slow' | 'too large' | 'wrongly encoded' | 'unknown encoding';

  constructor(problem: BodyProblem['problem'], cause?: unknown) {
    super(`the body is ${problem}`, { cause });
    this.problem = problem;
  }
}

/** The minimum number of bytes that must arrive in each interval until the body is complete. */
export interface LeastRate {
  /** Received bytes, before decoding. */
  bytes: number;
  /** In milliseconds. */
  withinMs: number;
}

/**
 * Reads a request's body and decodes it from its Content-Encoding (gzip, deflate, br). The result shares its
 * memory with nothing.
 *
 * @param limit most decoded bytes.
 * @param onChunk receives the decoded bytes as they arrive.
 * @throws BodyProblem. The request stays open; the calling code decides about the rest of its body.
 */
export async function readBody(
  request: IncomingMessage,
  limit: number,
  onChunk: (chunk: Uint8Array) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const source = decoded(request);
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    await new Promise<void>((resolve, reject) => {
      source.on('data', (chunk: Uint8Array) => {
        length += chunk.length;
        if (length > limit) return reject(new BodyProblem('too large'));
        chunks.push(chunk);
        onChunk(chunk);
      });
      source.on('end', resolve);
      if (source !== request)
        source.on('error', (cause) => reject(new BodyProblem('wrongly encoded', cause)));
      // The connection may have closed before the body is read, as when a waiting caller leaves. A body that
      // has arrived whole may still be on its way to the decoder, which then never gets its end.
      const abort = (): void => reject(new BodyProblem('aborted'));
      if (request.destroyed && !request.readableEnded) abort();
      request.on('close', () => {
        if (!request.readableEnded) abort();
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
 * Waits for a body while it arrives fast enough.
 *
 * @throws BodyProblem too slow; the errors of the reading.
 */
export async function atLeastRate<T>(
  request: IncomingMessage,
  { bytes, withinMs }: LeastRate,
  reading: Promise<T>,
): Promise<T> {
  const { socket } = request;
  let before = socket.bytesRead;
  let timer: NodeJS.Timeout | undefined;
  const tooSlow = new Promise<never>((_, reject) => {
    const look = (): void => {
      if (!request.complete && socket.bytesRead - before < bytes) {
        // The rest of the body is discarded.
        request.removeAllListeners('data').resume();
        reject(new BodyProblem('too slow'));
      }
      before = socket.bytesRead;
    };
    // Runs after the bytes that arrived while this process was busy are read.
    timer = setInterval(() => setImmediate(look), withinMs);
  });
  try {
    return await Promise.race([reading, tooSlow]);
  } finally {
    clearInterval(timer);
  }
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
  throw new BodyProblem('unknown encoding');
}

/**
 * Bytes copied per turn. Copying 40 MB at once, into memory that the system must first allocate, blocked all
 * other requests for up to 190 ms.
 */
const COPIED_AT_ONCE = 1024 * 1024;

/** Joins chunks in memory that nothing shares, and yields to the event loop between the pieces. */
export async function joined(chunks: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
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

const JSON_TYPE = /^application\/([\w.-]+\+)?json$/i;

/**
 * Refuses a body by what its headers declare: a type other than JSON (415), or too many bytes (413). The
 * request has not waited by then, and none of the body is read.
 */
export const declaredBody: Middleware = async (ctx, next) => {
  if (!JSON_TYPE.test(ctx.request.type)) {
    throw new HttpError(
      415,
      'CONTENT_TYPE_WRONG',
      'The body must be JSON, with Content-Type: application/json.',
    );
  }
  if ((ctx.request.length ?? 0) > LIMIT_BYTES) throw tooLarge(ctx);
  await next();
};
