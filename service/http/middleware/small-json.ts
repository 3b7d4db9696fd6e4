import type { Middleware } from 'koa';
import type { JsonObject } from '../../issuance/credential';
import { BodyProblem, atLeastRate } from '../read-body';
import { readJson } from '../read-json';
import { answerTo } from './json-body';
import { LEAST } from './limit-bodies';

/** State that the middleware sets for the route. */
export interface SmallJsonState {
  body: JsonObject;
}

/** Reads a JSON object of at most 64 KB. */
export const smallJson: Middleware<SmallJsonState> = async (ctx, next) => {
  try {
    ctx.state.body = (await atLeastRate(ctx.req, LEAST, readJson(ctx))).value;
  } catch (error) {
    throw error instanceof BodyProblem ? answerTo(ctx, error, '64 KB') : error;
  }
  await next();
};
