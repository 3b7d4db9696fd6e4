import type { Middleware } from 'koa';
import { ERROR_CODE_HEADER } from '../middleware/errors';

/** Whether the service does what it is there for, and the details. */
export interface HealthReport {
  isHealthy: boolean;
  feeds: readonly object[];
  /** Undefined while documents cannot be issued: settings are missing. */
  issuing: object | undefined;
  /** Work that no setting follows; undefined while there is none, or it is not known. */
  unfollowed?: object | undefined;
}

/** GET /health: 200 while every registry's events are read, 503 when some are not. */
export function health(report: () => Promise<HealthReport>): Middleware {
  return async (ctx) => {
    const { isHealthy, ...details } = await report();
    ctx.status = isHealthy ? 200 : 503;
    if (!isHealthy) ctx.set(ERROR_CODE_HEADER, 'UNHEALTHY');
    ctx.body = { status: isHealthy ? 'ok' : 'failing', ...details };
  };
}
