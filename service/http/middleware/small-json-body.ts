import type { Middleware } from 'koa';
import type { JsonObject } from '../../issuance/credential';
import { mostBytes, SMALL_BYTES } from '../body-limit';
import { atLeastRate, BodyProblem } from '../read-body';
import { readJson } from '../read-json';
import { HttpError } from './errors';
import { answerToProblem } from './json-body';
import { LEAST } from './limit-bodies';

/** State that the middleware sets for the route. */
export interface SmallJsonState {
  json: JsonObject;
}

/**
 * Reads a JSON body of up to 64 KB, of the operator. Answers 413 over it, 400, 408 and 415 as POST /create
 * does.
 */
export const smallJsonBody: Middleware<SmallJsonState> = async (ctx, next) => {
  if (mostBytes(ctx) > SMALL_BYTES) {
    ctx.set('Connection', 'close');
    const message = 'The body is larger than 64 KB, or does not tell its length. Send Content-Length.';
    throw new HttpError(413, 'BODY_TOO_LARGE', message);
  }
  try {
    ctx.state.json = (await atLeastRate(ctx.req, LEAST, readJson(ctx))).value;
  } catch (error) {
    throw error instanceof BodyProblem ? answerToProblem(ctx, error) : error;
  }
  await next();
};
