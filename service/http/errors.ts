import type { Middleware } from 'koa';
import {
  CallerLeftError,
  RequestError,
  ServiceError,
  UnavailableError,
  codeOf,
  messageOf,
  orUndefined,
} from '../base/errors';
import { printable } from '../base/printable';
import type { Logger } from '../base/logger';
import type { RequestState } from './request-log';

/**
 * Header of every answer with a status of 400 or above: a stable code of docs/error-codes.md. It tells a
 * program whether the mistake is its own or the service fails, and whether a document was refused or is still
 * in progress.
 */
export const ERROR_CODE_HEADER = 'X-Error-Code';

/** An error in the use of HTTP. It has a status other than 500, and its message is sent to the caller. */
export class HttpError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'HttpError';
  }
}

/**
 * Errors that concern the request; those of issuing concern its shape rather than the signed content. Their
 * message is sent to the caller.
 */
export const STATUS_OF_REQUEST_ERRORS: Readonly<Record<string, number>> = {
  BODY_AMBIGUOUS: 400,
  BODY_NOT_JSON: 400,
  BODY_TOO_COMPLEX: 400,
  CONTENT_CHANGED: 400,
  CONTEXT_UNAVAILABLE: 503,
  CREDENTIAL_INVALID: 400,
  CREDENTIAL_ALREADY_DERIVED: 400,
  DERIVATION_FAILED: 400,
  POINTER_INVALID: 400,
  POINTER_MATCHES_NOTHING: 400,
  PROOF_UNSUPPORTED: 400,
  ESCROWS_UNSUPPORTED: 400,
  EVIDENCE_TOO_LARGE: 422,
  QUERY_INVALID: 400,
  REQUEST_FIELD_INVALID: 400,
  CHAIN_ID_MISMATCH: 400,
  FINALITY_UNSUPPORTED: 400,
  NETWORK_NOT_CONFIGURED: 400,
  REGISTRY_INVALID: 400,
  REGISTRY_MISSING: 400,
  REGISTRY_UNKNOWN: 404,
  REGISTRY_FOLLOWED: 409,
  REGISTRY_IN_SETTINGS: 409,
  SECRETS_KEY_MISSING: 400,
  SECRETS_KEY_WRONG: 409,
  SIGNING_KEY_MISSING: 409,
  SINK_NOT_ALLOWED: 400,
  IDEMPOTENCY_KEY_REUSED: 422,
  SUBSCRIPTION_IN_SETTINGS: 409,
  SUBSCRIPTION_INVALID: 400,
  SUBSCRIPTION_UNKNOWN: 404,
  SUBSCRIPTIONS_TOO_MANY: 409,
  TOKEN_ID_INVALID: 400,
};

/** nginx's status for a caller that left. It appears only in the log. */
const CLIENT_CLOSED_REQUEST = 499;

const INTERNAL_SERVER_ERROR = 'Internal server error';

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
      const isForOperator = ctx.state.role === 'operator' && thrown instanceof ServiceError;
      const reason = isForOperator ? withRemedy(thrown) : INTERNAL_SERVER_ERROR;
      // Masked before it is cut: part of a secret would not be recognised.
      const message = printable(options.mask(publicStatus === undefined ? reason : messageOf(thrown)));
      const code = codeOf(thrown) ?? 'INTERNAL';
      if (publicStatus === undefined) logFailure(ctx.state.log, thrown, { code, status });
      else if (thrown instanceof CallerLeftError) ctx.state.log.info({ code, status }, message);
      else ctx.state.log.warn({ code, status }, message);
      ctx.set(ERROR_CODE_HEADER, publicCodeOf(thrown));
      if (thrown instanceof UnavailableError) ctx.set('Retry-After', secondsOf(thrown.retryAfterMs));
      const stack = options.development && thrown instanceof Error && thrown.stack;
      ctx.status = status;
      ctx.body = { error: { message, ...(stack && { stack: options.mask(stack) }) } };
    }
  };
}

/** The status of an error whose message may be sent; undefined for a 500 without its reason. */
function publicStatusOf(thrown: unknown): number | undefined {
  if (thrown instanceof HttpError) return thrown.status;
  if (thrown instanceof UnavailableError) return 503;
  if (thrown instanceof CallerLeftError) return CLIENT_CLOSED_REQUEST;
  return thrown instanceof RequestError ? STATUS_OF_REQUEST_ERRORS[thrown.code] : undefined;
}

function withRemedy({ message, remedy }: ServiceError): string {
  return remedy === undefined || message.includes(remedy)
    ? message
    : `${message.replace(/\.$/, '')}. ${remedy}`;
}

/** Logs the error's message and the name of the contract's error. The caller gets neither. */
function logFailure(log: Logger, error: unknown, line: { code: string; status: number }): void {
  if (error instanceof ServiceError) log.error({ error, ...line, reason: error.reason }, error.message);
  else log.error({ error, ...line }, 'request failed');
}

/** Codes of libraries and Node.js appear only in the log, because the service cannot keep them stable. */
function publicCodeOf(thrown: unknown): string {
  return thrown instanceof ServiceError || thrown instanceof HttpError ? thrown.code : 'INTERNAL';
}

/** At least 1, because a caller would not wait for 0. */
function secondsOf(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)));
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
    throw new HttpError(405, 'METHOD_NOT_ALLOWED', 'This path does not answer that method.');
  }
  ctx.remove('Allow');
  throw new HttpError(404, 'NOT_FOUND', 'There is nothing at this path.');
};

/**
 * Refuses a request whose target cannot be read, an HTTP/1.1 request without Host, and any with several (RFC
 * 9112, section 3.2). The router would use malformed percent-encoding as literal text. The character NUL has
 * no use in a path, and PostgreSQL refuses text that has it.
 */
export const wellFormed: Middleware = async (ctx, next) => {
  const hosts = ctx.req.headersDistinct.host ?? [];
  if (hosts.length > 1)
    throw new HttpError(400, 'REQUEST_MALFORMED', 'The request has the header Host more than once.');
  if (ctx.req.httpVersion === '1.1' && hosts.length === 0)
    throw new HttpError(400, 'REQUEST_MALFORMED', 'The request has no header Host.');
  // Koa's ctx.path throws for a target that is not a URL.
  const path = orUndefined(() => decodeURIComponent(ctx.path));
  if (path === undefined) {
    const message = 'The path has malformed percent-encoding, or is no path. Write % as %25.';
    throw new HttpError(400, 'PATH_MALFORMED', message);
  }
  if (path.includes('\0'))
    throw new HttpError(400, 'PATH_MALFORMED', 'The path has the character NUL (%00): leave it out.');
  await next();
};
