import type { PostResult } from './post';

/** The outcome of an attempt. */
export type Outcome =
  | { delivered: true; status: number }
  | {
      delivered: false;
      status: number | undefined;
      error: string;
      retryAfterMs: number | undefined;
      /** The receiver wants no further deliveries (410). */
      gone: boolean;
    };

const GONE = 410;

/**
 * A 2xx status is success; everything else is not, including redirects (docs/specification.md 8.3).
 * `Retry-After` may be seconds or an HTTP date.
 */
export function classifyOutcome(result: PostResult, now: number): Outcome {
  if (result.status === undefined) {
    return {
      delivered: false,
      status: undefined,
      error: result.failure,
      retryAfterMs: undefined,
      gone: false,
    };
  }
  const { status, retryAfter } = result;
  if (status >= 200 && status < 300) return { delivered: true, status };
  const error = status >= 300 && status < 400 ? `redirected (${status})` : `answered ${status}`;
  const retryAfterMs = retryAfterMsOf(retryAfter, now);
  return { delivered: false, status, error, retryAfterMs, gone: status === GONE };
}

function retryAfterMsOf(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
