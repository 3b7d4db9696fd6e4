import { createHash } from 'node:crypto';
import type { Context, Middleware } from 'koa';
import { parseCreateRequest } from '../../issuance/create-request';
import { LIMIT_BYTES, mostBytes, SMALL_BYTES, tooLarge } from '../body-limit';
import { atLeastRate, BodyProblem, readBody } from '../read-body';
import { readJson } from '../read-json';
import type { AcceptedState } from './accept-document';
import type { BodyLimitsState } from './limit-bodies';
import { HttpError } from './errors';

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
 * larger one is parsed by the thread that signs it, because parsing 40 MB would block all other requests for
 * 100 ms. Answers 413 over the limit, 400 for a body that is incomplete, and 408 for one that hardly arrives.
 */
export const jsonBody: Middleware<JsonBodyState & AcceptedState & BodyLimitsState> = async (ctx, next) => {
  const { accepted, least } = ctx.state;
  const hash = createHash('sha256').update(`${accepted.documentType}\n`);
  try {
    if (mostBytes(ctx) <= SMALL_BYTES) {
      const { bytes, value } = await atLeastRate(ctx.req, least, readJson(ctx));
      parseCreateRequest(value);
      hash.update(bytes);
      ctx.state.body = bytes;
    } else {
      const read = readBody(ctx.req, LIMIT_BYTES, (chunk) => hash.update(chunk));
      ctx.state.body = await atLeastRate(ctx.req, least, read);
    }
  } catch (error) {
    throw error instanceof BodyProblem ? answerTo(ctx, error) : error;
  }
  ctx.state.requestHash = hash.digest('hex');
  await next();
};

/** The answer to a request whose body cannot be read. `limit`: for the message. */
export function answerTo(ctx: Context, { problem }: BodyProblem, limit?: string): HttpError {
  if (problem === 'too large') return tooLarge(ctx, limit);
  if (problem === 'too slow') return tooSlow(ctx);
  if (problem === 'unknown encoding')
    return new HttpError(415, 'CONTENT_ENCODING_UNSUPPORTED', 'Unsupported Content-Encoding.');
  if (problem === 'aborted')
    return new HttpError(400, 'BODY_ABORTED', 'The body ended before it was complete.');
  return new HttpError(400, 'BODY_NOT_JSON', 'The body does not decode as its Content-Encoding says.');
}

/** The connection ends with the answer; the rest of the body is not awaited. */
function tooSlow(ctx: Context): HttpError {
  ctx.set('Connection', 'close');
  return new HttpError(408, 'BODY_TOO_SLOW', 'The body arrives too slowly.');
}
