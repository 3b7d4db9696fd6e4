import type { Middleware } from 'koa';
import { ERROR_CODE_HEADER } from '../middleware/errors';

/** Whether every registry's events are read, and the details. */
export interface HealthReport {
  isHealthy: boolean;
  feeds: readonly object[];
  /** Undefined when documents cannot be issued because settings are missing. */
  issuing: object | undefined;
  /** Work in the database that no setting follows; undefined if there is none or it is not known. */
  unfollowed?: object | undefined;
  /** Subscriptions that are paused, gone or failing; undefined if there are none or it is not known. */
  subscriptions?: readonly object[] | undefined;
}

/** GET /health: 200 while every registry's events are read, otherwise 503. */
export function health(report: () => Promise<HealthReport>): Middleware {
  return async (ctx) => {
    const { isHealthy, ...details } = await report();
    ctx.status = isHealthy ? 200 : 503;
    if (!isHealthy) ctx.set(ERROR_CODE_HEADER, 'UNHEALTHY');
    ctx.body = { status: isHealthy ? 'ok' : 'failing', ...details };
  };
}
