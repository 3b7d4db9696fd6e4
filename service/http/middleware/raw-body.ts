import type { Middleware } from 'koa';
import { arrived } from './json-body';
import type { BodyLimitsState } from './limit-bodies';
import { readBody } from '../read-body';

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
