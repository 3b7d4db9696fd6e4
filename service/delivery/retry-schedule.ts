import type { RetrySchedule } from '../base/delivery-options';

/**
 * Minimum number of attempts before an event is given up. It protects events when the clock is set forward by
 * days or the service was down for days. With the default schedule, this many attempts take about seven
 * hours.
 */
const LEAST_ATTEMPTS = 50;

/** Longest pause that a receiver may ask for. */
export const LONGEST_RETRY_AFTER_MS = 24 * 3_600_000;

/** A failed attempt. Times are in epoch milliseconds. */
interface FailedAttempt {
  /** 1 for the first attempt. */
  attempt: number;
  firstAttemptedAt: number;
  now: number;
  /** The pause that the receiver asked for. */
  retryAfterMs: number | undefined;
}

/**
 * Time of the next attempt. The pause doubles with each attempt up to the maximum. Up to half of it is then
 * taken off at random, so that queues that failed together are not retried together. The last attempt is made
 * at the deadline, or later if there were fewer than the minimum number of attempts by then. After that the
 * result is undefined.
 *
 * A receiver that asks for a longer pause gets it, up to a day, but no later than the deadline. After the
 * deadline it gets at most the schedule's maximum: otherwise the missing attempts could take weeks.
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
  const longestAskedMs = isLate
    ? Math.min(LONGEST_RETRY_AFTER_MS, schedule.maxDelayMs)
    : LONGEST_RETRY_AFTER_MS;
  const delayMs = Math.max(
    Math.round(pauseAfter(attempt, schedule) * (1 - random / 2)),
    Math.min(retryAfterMs ?? 0, longestAskedMs),
  );
  return isLate ? now + delayMs : Math.min(now + delayMs, deadline);
}

/**
 * The pause after an attempt, before the random reduction and without the pause that the receiver asked for.
 */
function pauseAfter(attempt: number, { initialDelayMs, maxDelayMs }: RetrySchedule): number {
  return Math.min(initialDelayMs * 2 ** Math.min(attempt - 1, 52), maxDelayMs);
}

/** The minimum number of attempts. It is lower if fewer fit into the schedule with the longest pauses. */
function leastAttempts(schedule: RetrySchedule): number {
  let attempts = 1;
  let elapsedMs = pauseAfter(attempts, schedule);
  while (attempts < LEAST_ATTEMPTS && elapsedMs <= schedule.giveUpAfterMs) {
    attempts++;
    elapsedMs += pauseAfter(attempts, schedule);
  }
  return attempts;
}
