import type { Middleware } from 'koa';
import { hasBearerKey } from './bearer-key';
import { HttpError } from './errors';

/** Requires `Authorization: Bearer <API_KEY>` when a key is configured. */
export function requireApiKey(apiKey: string | undefined): Middleware {
  return async (ctx, next) => {
    if (apiKey !== undefined && !hasBearerKey(ctx, apiKey)) {
      const message = 'This endpoint needs the header Authorization: Bearer <API_KEY>.';
      throw new HttpError(401, 'API_KEY_WRONG', message);
    }
    await next();
  };
}
