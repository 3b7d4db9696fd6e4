import type { Context, Middleware } from 'koa';
import type { JsonObject } from '../../issuance/credential';
import { parseBody } from '../../issuance/parse-body';
import { mostBytes, SMALL_BYTES } from '../body-limit';
import { BodyProblem, atLeastRate, readBody } from '../read-body';
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
    ctx.state.body = await atLeastRate(ctx.req, LEAST, read(ctx));
  } catch (error) {
    throw error instanceof BodyProblem ? answerTo(ctx, error, '64 KB') : error;
  }
  await next();
};

/** The length of a compressed body is not known before it is decoded. */
async function read(ctx: Context): Promise<JsonObject> {
  if (mostBytes(ctx) <= SMALL_BYTES) return (await readJson(ctx)).value;
  return parseBody(await readBody(ctx.req, SMALL_BYTES, () => undefined));
}
