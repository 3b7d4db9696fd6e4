import type { Middleware } from 'koa';

/** Metrics in a text format. */
export interface MetricsText {
  contentType: string;
  text: () => Promise<string>;
}

/** GET /metrics, for Prometheus. */
export function metrics({ contentType, text }: MetricsText): Middleware {
  return async (ctx) => {
    ctx.body = await text();
    ctx.set('Content-Type', contentType);
  };
}
