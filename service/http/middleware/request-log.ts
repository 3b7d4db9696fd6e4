import type { Middleware } from 'koa';
import type { Logger } from '../../base/logger';

/** An id from the caller is kept if it cannot disturb a log line or a header. */
const ACCEPTABLE_REQUEST_ID = /^[\w.:-]{1,128}$/;

const LONGEST_PATH = 500;

/** What the middleware leaves for those that come after it. */
export interface RequestState {
  log: Logger;
}

/**
 * Gives every request an id, in `X-Request-Id` and in each of its log lines, and logs one line when it is
 * answered.
 */
export function requestLog(logger: Logger, newId: () => string): Middleware<RequestState> {
  return async (ctx, next) => {
    const sent = ctx.get('X-Request-Id');
    const requestId = ACCEPTABLE_REQUEST_ID.test(sent) ? sent : newId();
    ctx.set('X-Request-Id', requestId);
    ctx.state.log = logger.child({ requestId });
    const start = performance.now();
    await next();
    const ms = Math.round(performance.now() - start);
    // Not ctx.path: it throws for a target that is no URL.
    const path = ctx.url.split('?')[0]?.slice(0, LONGEST_PATH);
    ctx.state.log.info({ method: ctx.method, path, status: ctx.status, ms }, 'request');
  };
}
