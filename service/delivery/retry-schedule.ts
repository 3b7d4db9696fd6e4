/** Bounds of the exponential backoff, in milliseconds. */
export interface RetrySchedule {
  initialDelayMs: number;
  maxDelayMs: number;
}

/** DESIGN section 4: from one second up to fifteen minutes. */
export const DEFAULT_RETRY_SCHEDULE: RetrySchedule = { initialDelayMs: 1_000, maxDelayMs: 15 * 60_000 };

/**
 * How long to wait after the given attempt failed: doubles with each attempt up to the maximum, then up to half of it is taken
 * off at random, so that streams that failed together do not come back together. A receiver that asks for more time gets it,
 * up to the maximum.
 *
 * @param attempt 1 for the first.
 * @param random from 0 to below 1.
 */
export function retryDelayMs(
  attempt: number,
  schedule: RetrySchedule,
  retryAfterMs: number | undefined,
  random: number,
): number {
  const doubled = Math.min(schedule.initialDelayMs * 2 ** Math.min(attempt - 1, 52), schedule.maxDelayMs);
  const jittered = Math.round(doubled * (1 - random / 2));
  return Math.max(jittered, Math.min(retryAfterMs ?? 0, schedule.maxDelayMs));
}
