import type { Middleware } from 'koa';
import { codeOf } from '../../errors';
import type { RequestState } from './request-log';

/** An answer other than 500 whose reason may be told: wrong use of HTTP (DESIGN section 5). */
export class HttpError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = 'HttpError';
    this.status = status;
    this.code = code;
  }
}

const INTERNAL_SERVER_ERROR = 'Internal server error';

/**
 * Turns everything thrown into the document's error body. The reason of a 500 is logged and never returned, except as a stack
 * when NODE_ENV is development, and then masked.
 */
export function errors(options: {
  development: boolean;
  mask: (text: string) => string;
}): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const status = thrown instanceof HttpError ? thrown.status : 500;
      const message = thrown instanceof HttpError ? thrown.message : INTERNAL_SERVER_ERROR;
      const code = codeOf(thrown) ?? 'INTERNAL';
      if (status >= 500) ctx.state.log.error({ error: thrown, code, status }, 'request failed');
      else ctx.state.log.warn({ code, status }, message);
      const stack = options.development && thrown instanceof Error && thrown.stack;
      ctx.status = status;
      ctx.body = { error: { message, ...(stack && { stack: options.mask(stack) }) } };
    }
  };
}
