/** Bounds of the exponential backoff, in milliseconds. */
export interface RetrySchedule {
  initialDelayMs: number;
  maxDelayMs: number;
  /** From an event's first attempt until it is given up. */
  giveUpAfterMs: number;
}

const MINUTE_MS = 60_000;

/** DESIGN section 4: from one second up to fifteen minutes, for three days. */
export const DEFAULT_RETRY_SCHEDULE: RetrySchedule = {
  initialDelayMs: 1_000,
  maxDelayMs: 15 * MINUTE_MS,
  giveUpAfterMs: 3 * 24 * 60 * MINUTE_MS,
};

/** An attempt that failed. Times in epoch milliseconds. */
export interface FailedAttempt {
  /** 1 for the first. */
  attempt: number;
  firstAttemptedAt: number;
  now: number;
  /** What the receiver asked for. */
  retryAfterMs: number | undefined;
}

/**
 * When to try again: the pause doubles with each attempt up to the maximum, then up to half of it is taken
 * off at random, so that streams that failed together do not come back together. A receiver that asks for
 * more time gets it, up to the maximum. The last attempt is made when the time is up; undefined after it.
 *
 * @param random from 0 to below 1.
 */
export function nextAttemptAt(
  { attempt, firstAttemptedAt, now, retryAfterMs }: FailedAttempt,
  schedule: RetrySchedule,
  random: number,
): number | undefined {
  const deadline = firstAttemptedAt + schedule.giveUpAfterMs;
  if (now >= deadline) return undefined;
  const doubled = Math.min(schedule.initialDelayMs * 2 ** Math.min(attempt - 1, 52), schedule.maxDelayMs);
  const jittered = Math.round(doubled * (1 - random / 2));
  const delayMs = Math.max(jittered, Math.min(retryAfterMs ?? 0, schedule.maxDelayMs));
  return Math.min(now + delayMs, deadline);
}
