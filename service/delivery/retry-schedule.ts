/** Bounds of the exponential backoff, in milliseconds. */
export interface RetrySchedule {
  initialDelayMs: number;
  maxDelayMs: number;
  /** From an event's first attempt until it is given up. */
  giveUpAfterMs: number;
}

const MINUTE_MS = 60_000;

/** From one second up to fifteen minutes, for three days (docs/specification.md 8.3). */
export const DEFAULT_RETRY_SCHEDULE: RetrySchedule = {
  initialDelayMs: 1_000,
  maxDelayMs: 15 * MINUTE_MS,
  giveUpAfterMs: 3 * 24 * 60 * MINUTE_MS,
};

/**
 * Attempts that are made whatever the time is: a clock that was set forward by days, or a service that stood
 * still for as long, must not give up what was hardly tried. About seven hours of the default schedule.
 */
const LEAST_ATTEMPTS = 50;

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
 * more time gets it, up to the maximum. The last attempt is made when the time is up, or later when few were
 * made until then; undefined after it.
 *
 * @param random from 0 to below 1.
 */
export function nextAttemptAt(
  { attempt, firstAttemptedAt, now, retryAfterMs }: FailedAttempt,
  schedule: RetrySchedule,
  random: number,
): number | undefined {
  const deadline = firstAttemptedAt + schedule.giveUpAfterMs;
  const isLate = now >= deadline;
  if (isLate && attempt >= leastAttempts(schedule)) return undefined;
  const delayMs = Math.max(
    Math.round(pauseAfter(attempt, schedule) * (1 - random / 2)),
    Math.min(retryAfterMs ?? 0, schedule.maxDelayMs),
  );
  return isLate ? now + delayMs : Math.min(now + delayMs, deadline);
}

/** The longest pause after an attempt that nobody asks for. */
function pauseAfter(attempt: number, { initialDelayMs, maxDelayMs }: RetrySchedule): number {
  return Math.min(initialDelayMs * 2 ** Math.min(attempt - 1, 52), maxDelayMs);
}

/** No more than there is time for with the longest pauses. */
function leastAttempts(schedule: RetrySchedule): number {
  let attempts = 1;
  let elapsedMs = pauseAfter(attempts, schedule);
  while (attempts < LEAST_ATTEMPTS && elapsedMs <= schedule.giveUpAfterMs) {
    attempts++;
    elapsedMs += pauseAfter(attempts, schedule);
  }
  return attempts;
}
