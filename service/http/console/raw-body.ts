import type { Middleware } from 'koa';
import { answerTo } from '../middleware/json-body';
import { LEAST, type BodyLimitsState } from '../middleware/limit-bodies';
import { atLeastRate, BodyProblem, readBody } from '../read-body';

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
    try {
      const read = readBody(ctx.req, limit.bytes, () => undefined);
      ctx.state.bytes = await atLeastRate(ctx.req, ctx.state.least ?? LEAST, read);
    } catch (error) {
      throw error instanceof BodyProblem ? answerTo(ctx, error, limit.words) : error;
    }
    await next();
  };
}
