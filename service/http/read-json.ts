import { isUtf8 } from 'node:buffer';
import bodyParser from 'koa-bodyparser';
import type { Context } from 'koa';
import type { JsonObject } from '../issuance/credential';
import { jsonObjectOf, notJson, refuseComplex } from '../issuance/parse-body';
import { SMALL_BYTES } from './body-limit';
import { BodyProblem, joined } from './read-body';

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

/** A small body: its raw bytes, in memory that nothing shares, and its parsed value. */
export interface ReadJson {
  bytes: Uint8Array<ArrayBuffer>;
  value: JsonObject;
}

/**
 * Reads and parses a body of up to 64 KB. koa-bodyparser reads an empty body as `{}`, and invalid UTF-8 as
 * U+FFFD, which would be signed. The bytes are therefore checked separately.
 *
 * @throws RequestError BODY_NOT_JSON, BODY_TOO_COMPLEX; BodyProblem when the body does not arrive, or is too
 *   large.
 */
export async function readJson(ctx: Context): Promise<ReadJson> {
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
  const value = jsonObjectOf(ctx.request.body);
  // A request that waits for its mint must not keep these in memory.
  ctx.request.body = undefined;
  ctx.request.rawBody = '';
  return { bytes, value };
}

/** Invalid JSON is a SyntaxError. The other errors come from reading and have a type. */
function problemOf(cause: unknown): unknown {
  if (cause instanceof SyntaxError) return notJson('', cause);
  const type = cause instanceof Error && 'type' in cause ? cause.type : undefined;
  if (type === 'entity.too.large') return new BodyProblem('too large', cause);
  const isAborted = type === 'request.aborted' || type === 'stream.not.readable';
  return isAborted ? new BodyProblem('aborted', cause) : cause;
}
