import type { Middleware } from 'koa';

/** Whether the service does what it is there for, and the details. */
export interface HealthReport {
  isHealthy: boolean;
  feeds: readonly object[];
}

/** GET /health: 200 while every registry's events are read, 503 when some are not. */
export function health(report: () => HealthReport): Middleware {
  return (ctx) => {
    const { isHealthy, feeds } = report();
    ctx.status = isHealthy ? 200 : 503;
    ctx.body = { status: isHealthy ? 'ok' : 'failing', feeds };
  };
}
