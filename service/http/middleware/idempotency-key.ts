import type { Middleware } from 'koa';
import { IDEMPOTENCY_KEY } from '../description/documents';
import { HttpError } from './errors';

/** State that the middleware sets for the route. */
export interface IdempotencyKeyState {
  /** Undefined when the caller sent none. */
  idempotencyKey: string | undefined;
}

/**
 * Reads the caller's Idempotency-Key. Node.js joins repeated headers with a comma and a space; no valid key
 * has a space.
 */
export const idempotencyKey: Middleware<IdempotencyKeyState> = async (ctx, next) => {
  const sent = ctx.req.headers['idempotency-key'];
  const key = Array.isArray(sent) ? sent.join(', ') : sent;
  if (key !== undefined && !IDEMPOTENCY_KEY.safeParse(key).success) {
    const message = 'The header Idempotency-Key must be 1 to 255 visible ASCII characters.';
    throw new HttpError(400, 'IDEMPOTENCY_KEY_INVALID', message);
  }
  ctx.state.idempotencyKey = key;
  await next();
};
