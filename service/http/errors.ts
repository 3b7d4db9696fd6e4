import type { Middleware } from 'koa';
import {
  CallerLeftError,
  CursorExpiredError,
  RequestError,
  ServiceError,
  TooOftenError,
  UnavailableError,
  codeOf,
  messageOf,
  orUndefined,
} from '../base/errors';
import { printable } from '../base/printable';
import { ERROR_CODE_HEADER, type RequestState } from './request-log';

/**
 * Turns every error into the error body of docs/specification.md 5.4. The reason of a 500 is logged, and
 * returned only to an operator of the console. In development (NODE_ENV) every error body has a masked stack.
 */
export function errors(options: {
  development: boolean;
  mask: (text: string) => string;
}): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const publicStatus = publicStatusOf(thrown);
      const status = publicStatus ?? 500;
      const ours = thrown instanceof ServiceError ? thrown : undefined;
      const reason = ours && ctx.state.role === 'operator' ? withRemedy(ours) : 'Internal server error';
      // Masked before it is cut: part of a secret would not be recognised.
      const message = printable(options.mask(publicStatus === undefined ? reason : messageOf(thrown)));
      const { log } = ctx.state;
      const line = { code: codeOf(thrown) ?? 'INTERNAL', status };
      if (thrown instanceof CallerLeftError) log.info(line, message);
      else if (publicStatus !== undefined) log.warn(line, message);
      // The caller gets neither the message nor the name of the contract's error.
      else log.error({ error: thrown, ...line, reason: ours?.reason }, ours?.message ?? 'request failed');
      // Codes of libraries and Node.js appear only in the log, because the service cannot keep them stable.
      ctx.set(ERROR_CODE_HEADER, ours?.code ?? 'INTERNAL');
      if (thrown instanceof UnavailableError) {
        // At least 1, because a caller would not wait for 0.
        ctx.set('Retry-After', String(Math.max(1, Math.ceil(thrown.retryAfterMs / 1000))));
      }
      const stack = options.development && thrown instanceof Error && thrown.stack;
      ctx.status = status;
      const cursor = thrown instanceof CursorExpiredError && { cursor: thrown.cursor };
      ctx.body = { error: { message, ...(stack && { stack: options.mask(stack) }) }, ...cursor };
    }
  };
}

/**
 * The status of an error whose message may be sent; undefined for a 500 without its reason. A RequestError
 * with the status 500 is not explained to the caller.
 */
function publicStatusOf(thrown: unknown): number | undefined {
  if (thrown instanceof TooOftenError) return 429;
  if (thrown instanceof UnavailableError) return 503;
  // nginx's status for a caller that left. It appears only in the log.
  if (thrown instanceof CallerLeftError) return 499;
  return thrown instanceof RequestError && thrown.status !== 500 ? thrown.status : undefined;
}

function withRemedy({ message, remedy }: ServiceError): string {
  return remedy === undefined || message.includes(remedy)
    ? message
    : `${message.replace(/\.$/, '')}. ${remedy}`;
}

/**
 * Turns a request that no route answered into an error. If the router knows the path, it leaves 405 or 501,
 * with the path's methods in `Allow`.
 */
export const unanswered: Middleware = async (ctx, next) => {
  await next();
  const isUnanswered = ctx.status === 404 || ctx.status === 405 || ctx.status === 501;
  if (!isUnanswered) return;
  if (ctx.response.get('Allow')) {
    throw new RequestError('METHOD_NOT_ALLOWED', 'This path does not answer that method.');
  }
  ctx.remove('Allow');
  throw new RequestError('NOT_FOUND', 'There is nothing at this path.');
};

/**
 * Refuses a request whose target cannot be read, an HTTP/1.1 request without Host, and any with several (RFC
 * 9112, section 3.2). The router would use malformed percent-encoding as literal text. The character NUL has
 * no use in a path, and PostgreSQL refuses text that has it.
 */
export const wellFormed: Middleware = (ctx, next) => {
  // Names and values in turn. Node.js would keep headersDistinct, a copy, until the answer.
  const hosts = ctx.req.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts > 1)
    throw new RequestError('REQUEST_MALFORMED', 'The request has the header Host more than once.');
  if (ctx.req.httpVersion === '1.1' && hosts === 0)
    throw new RequestError('REQUEST_MALFORMED', 'The request has no header Host.');
  // Koa's ctx.path throws for a target that is not a URL.
  const path = orUndefined(() => decodeURIComponent(ctx.path));
  if (path === undefined) {
    const message = 'The path has malformed percent-encoding, or is no path. Write % as %25.';
    throw new RequestError('PATH_MALFORMED', message);
  }
  if (path.includes('\0'))
    throw new RequestError('PATH_MALFORMED', 'The path has the character NUL (%00): leave it out.');
  return next();
};
