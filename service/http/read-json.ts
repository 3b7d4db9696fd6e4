import { isUtf8 } from 'node:buffer';
import bodyParser from 'koa-bodyparser';
import type { Context } from 'koa';
import type { JsonObject } from '../issuance/credential';
import { jsonObjectOf, notJson, refuseComplex } from '../issuance/parse-body';
import { SMALL_BYTES } from './body-limit';
import { BodyProblem, joined } from './read-body';

/** `onProtoPoisoning` is an option of co-body, which reads for koa-bodyparser: jsonObjectOf looks for it. */
const OPTIONS: bodyParser.Options & { onProtoPoisoning: 'ignore' } = {
  enableTypes: ['json'],
  // Of the types whose name ends with +json koa-bodyparser knows some only: announcedBody has looked.
  detectJSON: () => true,
  jsonLimit: String(SMALL_BYTES),
  onProtoPoisoning: 'ignore',
};

const parse = bodyParser(OPTIONS);

/** A small body: as it came, in memory of its own, and parsed. */
export interface ReadJson {
  bytes: Uint8Array<ArrayBuffer>;
  value: JsonObject;
}

/**
 * Reads and parses a body of up to 64 KB. koa-bodyparser alone takes no body for `{}`, and bytes that are no
 * UTF-8 for U+FFFD, which would be signed: so the bytes are looked at beside it.
 *
 * @throws RequestError BODY_NOT_JSON, BODY_TOO_COMPLEX; BodyProblem when the body does not arrive.
 */
export async function readJson(ctx: Context): Promise<ReadJson> {
  const chunks: Uint8Array[] = [];
  // The parser begins to read in the same turn: neither misses anything.
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
  // A request that waits for its mint keeps neither.
  ctx.request.body = undefined;
  ctx.request.rawBody = '';
  return { bytes, value };
}

/** What is no JSON is a SyntaxError; the other errors are about the reading, and have a type. */
function problemOf(cause: unknown): unknown {
  if (cause instanceof SyntaxError) return notJson('', cause);
  const isAborted =
    cause instanceof Error &&
    'type' in cause &&
    (cause.type === 'request.aborted' || cause.type === 'stream.not.readable');
  return isAborted ? new BodyProblem('aborted', cause) : cause;
}
