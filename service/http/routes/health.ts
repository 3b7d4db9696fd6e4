import type { Middleware } from 'koa';
import { ERROR_CODE_HEADER } from '../middleware/errors';

/** Whether every registry's events are read, and the details. */
export interface HealthReport {
  isHealthy: boolean;
  /** Whether everything is lost when the process ends. */
  isDatabaseRemoved?: boolean;
  feeds: readonly object[];
  /** Undefined when documents cannot be issued because settings are missing. */
  issuing: object | undefined;
  /** Work in the database that no setting follows; undefined if there is none or it is not known. */
  unfollowed?: object | undefined;
  /** Subscriptions that are paused, gone or failing; undefined if there are none or it is not known. */
  subscriptions?: readonly object[] | undefined;
}

/**
 * GET /health: 200 while every registry's events are read, otherwise 503. It is also 200 if the database was
 * removed, because a 503 may lead to a restart.
 */
export function health(report: () => Promise<HealthReport>): Middleware {
  return async (ctx) => {
    const { isHealthy, isDatabaseRemoved = false, ...details } = await report();
    const isAlive = isHealthy || isDatabaseRemoved;
    ctx.status = isAlive ? 200 : 503;
    if (!isAlive) ctx.set(ERROR_CODE_HEADER, 'UNHEALTHY');
    ctx.body = {
      status: isHealthy && !isDatabaseRemoved ? 'ok' : 'failing',
      ...(isDatabaseRemoved && { database: 'removed' }),
      ...details,
    };
  };
}
