import type { PostResult } from './post';

/** Whether an attempt delivered its event. */
export type Outcome =
  | { delivered: true; status: number }
  | { delivered: false; status: number | undefined; error: string; retryAfterMs: number | undefined };

/**
 * 2xx is success; everything else, redirects included, is not (docs/specification.md 8.3). `Retry-After` is
 * seconds or an HTTP date.
 */
export function classifyOutcome(result: PostResult, now: number): Outcome {
  if (result.status === undefined) {
    return { delivered: false, status: undefined, error: result.failure, retryAfterMs: undefined };
  }
  const { status, retryAfter } = result;
  if (status >= 200 && status < 300) return { delivered: true, status };
  const error = status >= 300 && status < 400 ? `redirected (${status})` : `answered ${status}`;
  return { delivered: false, status, error, retryAfterMs: retryAfterMsOf(retryAfter, now) };
}

function retryAfterMsOf(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
