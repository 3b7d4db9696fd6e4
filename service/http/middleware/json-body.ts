import { json } from 'co-body';
import type { Context, Middleware } from 'koa';
import { HttpError } from './errors';

/** The document's limit for every JSON body: 50 MB, attachments included. */
const LIMIT_BYTES = 50 * 1024 * 1024;

const JSON_TYPE = /^application\/([\w.-]+\+)?json$/i;

/** What the middleware leaves for the route. */
export interface JsonBodyState {
  body: unknown;
}

/** Reads a JSON body. 415 for another content type, 413 over the limit, 400 for anything that is not JSON. */
export const jsonBody: Middleware<JsonBodyState> = async (ctx, next) => {
  if (!JSON_TYPE.test(ctx.request.type)) {
    throw new HttpError(
      415,
      'CONTENT_TYPE_WRONG',
      'The body must be JSON, with Content-Type: application/json.',
    );
  }
  if ((ctx.request.length ?? 0) > LIMIT_BYTES) throw tooLarge(ctx);
  ctx.state.body = await readJson(ctx);
  await next();
};

async function readJson(ctx: Context): Promise<unknown> {
  try {
    const { parsed, raw } = (await json(ctx.req, { limit: LIMIT_BYTES, returnRawBody: true })) as {
      parsed: unknown;
      raw: string;
    };
    // The library reads an empty body as an empty object.
    if (raw !== '' && !Array.isArray(parsed)) return parsed;
  } catch (cause) {
    const { status, type, message } = cause as { status?: number; type?: string; message?: string };
    if (status === 413) throw tooLarge(ctx);
    if (status === 415)
      throw new HttpError(415, 'CONTENT_ENCODING_UNSUPPORTED', 'Unsupported Content-Encoding.');
    if (type === 'request.aborted')
      throw new HttpError(400, 'BODY_ABORTED', 'The body ended before it was complete.');
    if (message?.includes('forbidden prototype property'))
      throw new HttpError(400, 'BODY_NOT_JSON', 'The body is not a valid JSON object: a key is "__proto__".');
  }
  throw new HttpError(400, 'BODY_NOT_JSON', 'The body is not a valid JSON object.');
}

/** The rest of the body is read and dropped, so that the caller can finish sending and read the answer. */
function tooLarge(ctx: Context): HttpError {
  ctx.set('Connection', 'close');
  ctx.req.unpipe();
  ctx.req.resume();
  return new HttpError(413, 'BODY_TOO_LARGE', 'The body is larger than 50 MB.');
}
