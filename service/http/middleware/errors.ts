import type { Middleware } from 'koa';
import { BusyError, CallerLeftError, RequestError, ServiceError, codeOf } from '../../base/errors';
import type { Logger } from '../../base/logger';
import type { RequestState } from './request-log';

/**
 * Carried by every answer from 400 up: the stable code of docs/error-codes.md, by which a program tells a
 * mistake of its own from an outage, and a document that was not issued from one that is still under way.
 */
export const ERROR_CODE_HEADER = 'X-Error-Code';

/** An answer other than 500 whose reason may be told: wrong use of HTTP. */
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

/** Errors of issuing that are about the request, not about what is signed: their reason may be told. */
const STATUS_OF_REQUEST_ERRORS: Readonly<Record<string, number>> = {
  BODY_NOT_JSON: 400,
  BODY_TOO_COMPLEX: 400,
  REQUEST_FIELD_INVALID: 400,
  IDEMPOTENCY_KEY_REUSED: 422,
};

/** nginx's own for it. Nobody receives it: it is in the log. */
const CLIENT_CLOSED_REQUEST = 499;

const INTERNAL_SERVER_ERROR = 'Internal server error';

/**
 * Turns everything thrown into the error body of docs/specification.md 5.4. The reason of a 500 is logged and
 * never returned, except as a stack when NODE_ENV is development, and then masked.
 */
export function errors(options: {
  development: boolean;
  mask: (text: string) => string;
}): Middleware<RequestState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const told = toldStatus(thrown);
      const status = told ?? 500;
      const message = told === undefined ? INTERNAL_SERVER_ERROR : (thrown as Error).message;
      const code = codeOf(thrown) ?? 'INTERNAL';
      if (told === undefined) logFailure(ctx.state.log, thrown, { code, status });
      else if (thrown instanceof CallerLeftError) ctx.state.log.info({ code, status }, message);
      else ctx.state.log.warn({ code, status }, message);
      ctx.set(ERROR_CODE_HEADER, publicCodeOf(thrown));
      if (thrown instanceof BusyError) ctx.set('Retry-After', secondsOf(thrown.retryAfterMs));
      const stack = options.development && thrown instanceof Error && thrown.stack;
      ctx.status = status;
      ctx.body = { error: { message, ...(stack && { stack: options.mask(stack) }) } };
    }
  };
}

/** The status of what may be told; undefined: 500, and nothing of the reason. */
function toldStatus(thrown: unknown): number | undefined {
  if (thrown instanceof HttpError) return thrown.status;
  if (thrown instanceof BusyError) return 503;
  if (thrown instanceof CallerLeftError) return CLIENT_CLOSED_REQUEST;
  return thrown instanceof RequestError ? STATUS_OF_REQUEST_ERRORS[thrown.code] : undefined;
}

/** In the error's words, with the name of the contract's error beside them. The caller is told neither. */
function logFailure(log: Logger, error: unknown, line: { code: string; status: number }): void {
  if (error instanceof ServiceError) log.error({ error, ...line, reason: error.reason }, error.message);
  else log.error({ error, ...line }, 'request failed');
}

/** The codes of libraries and of Node.js are for the log: they are not ours to keep stable. */
function publicCodeOf(thrown: unknown): string {
  return thrown instanceof ServiceError || thrown instanceof HttpError ? thrown.code : 'INTERNAL';
}

/** Of 0 nobody would wait. */
function secondsOf(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)));
}
