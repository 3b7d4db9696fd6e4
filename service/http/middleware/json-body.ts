import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import bodyParser from 'koa-bodyparser';
import { HttpError } from './errors';
import { LEAST, type BodyLimitsState } from './limits';
import {
  LIMIT_BYTES,
  mostBytes,
  SMALL_BYTES,
  tooLarge,
  atLeastRate,
  BodyProblem,
  joined,
  readBody,
  type LeastRate,
} from '../read-body';
import { parseCreateRequest } from '../../issuance/create-request';
import type { JsonObject } from '../../issuance/credential';
import type { AcceptedType } from '../../issuance/issue-document';
import { jsonObjectOf, notJson, parseBody, refuseComplex } from '../../issuance/parse-body';

/** State that the check of the document type sets for the reader of the body. */
export interface AcceptedState {
  /** The type in the path. */
  accepted: AcceptedType;
}

/** State that the middleware sets for the route. */
export interface JsonBodyState {
  /** The decoded body, in memory that nothing shares, so that it can be transferred to another thread. */
  body: Uint8Array<ArrayBuffer>;
  /**
   * SHA-256 in hex of the document type, a line feed and the body. Repetitions of a request have
   * the same hash.
   */
  requestHash: string;
}

/**
 * Reads the body of POST /create. The shape of a small body is checked here, before it waits for anything. A
 * larger one is checked by the thread that signs it, because parsing 40 MB would block all other requests for
 * 100 ms.
 *
 * The thread parses a small body again. Passing on the parsed value would cost more: parsing 1 KB takes 13 µs
 * and cloning its value 37 µs. A value takes up to 20 times the memory of its bytes while it waits for a
 * thread, and V8 cannot clone a deeply nested one.
 */
export const jsonBody: Middleware<JsonBodyState & AcceptedState & BodyLimitsState> = async (ctx, next) => {
  const { accepted, least } = ctx.state;
  const hash = createHash('sha256').update(`${accepted.documentType}\n`);
  const read = readBody(ctx.req, LIMIT_BYTES, (chunk) => hash.update(chunk));
  const body = await arrived(ctx, read, { least });
  if (mostBytes(ctx) <= SMALL_BYTES) parseCreateRequest(parseBody(body));
  ctx.state.body = body;
  ctx.state.requestHash = hash.digest('hex');
  await next();
};

/** State that the middleware sets for the route. */
export interface SmallJsonState {
  body: JsonObject;
}

/** Reads a JSON object of at most 64 KB. */
export const smallJson: Middleware<SmallJsonState> = async (ctx, next) => {
  ctx.state.body = await arrived(ctx, smallObject(ctx), { limit: '64 KB' });
  await next();
};

/**
 * Waits for a body while it arrives fast enough.
 *
 * @param limit the limit of its size, for the message.
 * @throws HttpError 413 over the limit, 400 for a body that is incomplete, 408 for one that hardly arrives,
 *   and 415 for an unknown encoding; the errors of the reading.
 */
export async function arrived<T>(
  ctx: Context,
  reading: Promise<T>,
  { least = LEAST, limit }: { least?: LeastRate | undefined; limit?: string },
): Promise<T> {
  try {
    return await atLeastRate(ctx.req, least, reading);
  } catch (error) {
    throw error instanceof BodyProblem ? answerTo(ctx, error, limit) : error;
  }
}

function answerTo(ctx: Context, { problem }: BodyProblem, limit: string | undefined): HttpError {
  if (problem === 'too large') return tooLarge(ctx, limit);
  if (problem === 'too slow') {
    // The connection ends with the answer; the rest of the body is not awaited.
    ctx.set('Connection', 'close');
    return new HttpError(408, 'BODY_TOO_SLOW', 'The body arrives too slowly.');
  }
  if (problem === 'unknown encoding')
    return new HttpError(415, 'CONTENT_ENCODING_UNSUPPORTED', 'Unsupported Content-Encoding.');
  if (problem === 'aborted')
    return new HttpError(400, 'BODY_ABORTED', 'The body ended before it was complete.');
  return new HttpError(400, 'BODY_NOT_JSON', 'The body does not decode as its Content-Encoding says.');
}

/**
 * `onProtoPoisoning` is an option of co-body, the reader of koa-bodyparser. jsonObjectOf refuses `__proto__`.
 */
const OPTIONS: bodyParser.Options & { onProtoPoisoning: 'ignore' } = {
  enableTypes: ['json'],
  // koa-bodyparser knows only some of the +json types. declaredBody has checked the type already.
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
  if (mostBytes(ctx) > SMALL_BYTES) return parseBody(await readBody(ctx.req, SMALL_BYTES, () => undefined));
  const chunks: Uint8Array[] = [];
  // The parser starts to read in the same turn, so both get every chunk.
  ctx.req.on('data', (chunk: Uint8Array) => chunks.push(chunk));
  try {
    await parse(ctx, async () => undefined);
  } catch (cause) {
    throw problemOf(cause);
  }
  const bytes = await joined(chunks);
  if (bytes.length === 0 || !isUtf8(bytes)) throw notJson();
  refuseComplex(bytes);
  return jsonObjectOf(ctx.request.body);
}

/** Invalid JSON is a SyntaxError. The other errors come from reading and have a type. */
function problemOf(cause: unknown): unknown {
  if (cause instanceof SyntaxError) return notJson('', cause);
  const type = cause instanceof Error && 'type' in cause ? cause.type : undefined;
  if (type === 'entity.too.large') return new BodyProblem('too large', cause);
  const isAborted = type === 'request.aborted' || type === 'stream.not.readable';
  return isAborted ? new BodyProblem('aborted', cause) : cause;
}

/** State that the middleware sets for the route. */
export interface RawBodyState {
  /** The decoded body, in memory that nothing shares. */
  bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Reads a body that another thread parses.
 *
 * @param limit most bytes, in numbers and in words.
 */
export function rawBody(limit: {
  bytes: number;
  words: string;
}): Middleware<RawBodyState & Partial<BodyLimitsState>> {
  return async (ctx, next) => {
    const read = readBody(ctx.req, limit.bytes, () => undefined);
    ctx.state.bytes = await arrived(ctx, read, { least: ctx.state.least, limit: limit.words });
    await next();
  };
}
