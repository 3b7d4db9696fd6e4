import { randomUUID } from 'node:crypto';
import { SpanKind, type Span } from '@opentelemetry/api';
import type { Context, Middleware } from 'koa';
import type { Holder } from '../access/access-keys';
import { cut } from '../base/errors';
import type { Lifecycle } from '../base/lifecycle';
import type { Logger } from '../base/logger';
import type { Time } from '../base/time';
import { beginSpan, callersTrace, endSpan, parseTraceparent, traceIdOf } from '../base/trace';
import type { Role, Session } from '../console/views';

/**
 * Header of every answer with a status of 400 or above: a stable code of docs/error-codes.md. It tells a
 * program whether the mistake is its own or the service fails, and whether a document was refused or is still
 * in progress.
 */
export const ERROR_CODE_HEADER = 'X-Error-Code';

/** An id from the caller is used only if it is safe in a log line and a header. */
const ACCEPTABLE_REQUEST_ID = /^[\w.:-]{1,128}$/;

/** State that the gate sets for the routes. */
export interface AccessState {
  /** The key that the caller has, or the role of its session. Absent: the operation needs neither. */
  role?: 'issuer' | 'admin' | Role;
  /** The holder of a key with a scope. */
  holder?: Holder;
  /** The session of a page, if the request has no key. */
  session?: Session;
}

/** State that the middleware sets for later ones. */
export interface RequestState extends AccessState {
  log: Logger;
  /** Epoch milliseconds. */
  receivedAt: number;
  /** Ends with the request. */
  span?: Span | undefined;
  /** The method and path of its operation, as described. Absent: it has none. */
  operation?: string;
  /** Aborts with a CallerLeftError when the connection ends before the request is answered. */
  left: AbortSignal;
  /** A program asks over and over: its answers are logged at debug, unless they are errors. */
  isRoutine?: boolean;
}

/**
 * Gives every request an id, in `X-Request-Id` and in each of its log lines. After its answer, it logs one
 * line, ends the span, and tells how long it took.
 */
export function requestLog(time: Time, lifecycle: Lifecycle, logger: Logger): Middleware<RequestState> {
  return async (ctx, next) => {
    const sent = ctx.get('X-Request-Id');
    const requestId = ACCEPTABLE_REQUEST_ID.test(sent) ? sent : randomUUID();
    ctx.set('X-Request-Id', requestId);
    ctx.state.log = logger.child({ requestId, traceId: parseTraceparent(ctx.get(TRACEPARENT))?.traceId });
    ctx.state.receivedAt = time.now();
    const start = time.elapsed();
    await next();
    const error = ctx.status >= 400 ? ctx.response.get(ERROR_CODE_HEADER) : undefined;
    const outcome = { 'http.response.status_code': ctx.status, 'error.type': error };
    endSpan(ctx.state.span, ctx.status >= 500, undefined, outcome);
    const ms = time.elapsed() - start;
    // ctx.path would throw for a target that is not a URL.
    const path = cut(ctx.url.split('?')[0] ?? '');
    const level = ctx.state.isRoutine === true && ctx.status < 400 ? 'debug' : 'info';
    ctx.state.log[level]({ method: ctx.method, path, status: ctx.status, ms: Math.round(ms) }, 'request');
    // The operation, and not the path, which callers choose.
    lifecycle.emit('answered', ctx.state.operation ?? 'none', ctx.status, ms);
  };
}

const TRACEPARENT = 'traceparent';

/**
 * Begins the span of a request that others follow in its trace: that of its caller, or a new one. The
 * caller's `tracestate` is not kept.
 *
 * @returns the place in the trace.
 */
export function traceRequest(ctx: Context & { state: RequestState }, route: string): string {
  const { state, method } = ctx;
  const caller = callersTrace(ctx.get(TRACEPARENT), state.role !== undefined);
  const [span, trace] = beginSpan(`${method} ${route}`, caller, {
    kind: SpanKind.SERVER,
    startTime: state.receivedAt,
    attributes: { 'http.request.method': method, 'http.route': route, 'url.path': ctx.path },
  });
  state.span = span;
  if (!parseTraceparent(ctx.get(TRACEPARENT))) state.log = state.log.child({ traceId: traceIdOf(trace) });
  return trace;
}
