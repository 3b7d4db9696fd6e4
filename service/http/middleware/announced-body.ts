import type { Middleware } from 'koa';
import { HttpError } from './errors';
import { LIMIT_BYTES, tooLarge } from '../body-limit';

const JSON_TYPE = /^application\/([\w.-]+\+)?json$/i;

/**
 * Refuses a body by its headers if it is not JSON (415) or too long (413), before the request waits and
 * before any of the body is read.
 */
export const announcedBody: Middleware = async (ctx, next) => {
  if (!JSON_TYPE.test(ctx.request.type)) {
    throw new HttpError(
      415,
      'CONTENT_TYPE_WRONG',
      'The body must be JSON, with Content-Type: application/json.',
    );
  }
  if ((ctx.request.length ?? 0) > LIMIT_BYTES) throw tooLarge(ctx);
  await next();
};
