import type { Middleware } from 'koa';
import { cut } from '../base/errors';
import type { Logger } from '../base/logger';
import type { Time } from '../base/time';
import type { TokenFacts } from '../console/sessions';
import type { Role } from '../console/views';

/** An id from the caller is used only if it is safe in a log line and a header. */
const ACCEPTABLE_REQUEST_ID = /^[\w.:-]{1,128}$/;

/** State that the gate sets for the routes. */
export interface AccessState {
  /** The key that the caller has, or the role of its session. Absent: the operation needs neither. */
  role?: 'issuer' | 'admin' | Role;
  /** The session of a page, if the request has no key. */
  session?: TokenFacts;
}

/** State that the middleware sets for later ones. */
export interface RequestState extends AccessState {
  log: Logger;
  /** Aborts with a CallerLeftError when the connection ends before the request is answered. */
  left: AbortSignal;
  /** A program asks over and over: its answers are logged at debug, unless they are errors. */
  isRoutine?: boolean;
}

/**
 * Gives every request an id, in `X-Request-Id` and in each of its log lines, and logs one line after its
 * answer.
 */
export function requestLog(time: Time, logger: Logger, newId: () => string): Middleware<RequestState> {
  return async (ctx, next) => {
    const sent = ctx.get('X-Request-Id');
    const requestId = ACCEPTABLE_REQUEST_ID.test(sent) ? sent : newId();
    ctx.set('X-Request-Id', requestId);
    ctx.state.log = logger.child({ requestId });
    const start = time.elapsed();
    await next();
    const ms = Math.round(time.elapsed() - start);
    // ctx.path would throw for a target that is not a URL.
    const path = cut(ctx.url.split('?')[0] ?? '');
    const level = ctx.state.isRoutine === true && ctx.status < 400 ? 'debug' : 'info';
    ctx.state.log[level]({ method: ctx.method, path, status: ctx.status, ms }, 'request');
  };
}
