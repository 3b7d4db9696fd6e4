import type { Middleware } from 'koa';
import { HttpError } from './errors';
import { LIMIT_BYTES, tooLarge } from '../body-limit';

const JSON_TYPE = /^application\/([\w.-]+\+)?json$/i;

/**
 * Refuses a body by what its headers declare: a type other than JSON (415), or too many bytes (413). The
 * request has not waited by then, and none of the body is read.
 */
export const declaredBody: Middleware = async (ctx, next) => {
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
