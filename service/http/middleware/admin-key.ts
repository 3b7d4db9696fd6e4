import type { Middleware } from 'koa';
import { hasBearerKey } from './bearer-key';
import { HttpError } from './errors';

/** Requires `Authorization: Bearer <ADMIN_API_KEY>`. */
export function requireAdminKey(adminApiKey: string): Middleware {
  return async (ctx, next) => {
    if (!hasBearerKey(ctx, adminApiKey)) {
      const message = 'This endpoint needs the header Authorization: Bearer <ADMIN_API_KEY>.';
      throw new HttpError(401, 'ADMIN_API_KEY_WRONG', message);
    }
    await next();
  };
}
