import type { Clock } from '../base/clock';
import type { Logger } from '../base/logger';
import type { RetrySchedule } from '../base/delivery-options';
import type { ClaimedDelivery, ClaimedQueue } from '../outbox/claim-queues';
import { aboutOf } from '../events/cloud-event';
import type { Attempted, Settlement } from '../outbox/settle-queues';
import type { PostResult, WebhookClient } from './post';

/** Dependencies of an attempt. `random` returns a number from 0 to below 1. */
export interface AttemptOptions {
  client: WebhookClient;
  schedule: RetrySchedule;
  clock: Clock;
  random: () => number;
  logger: Logger;
  /** Called with the outcome of each attempt. */
  onAttempt(outcome: 'delivered' | 'failed' | 'dead'): void;
}

/**
 * Sends the events of a claimed queue one after the other, up to the first that fails, or until `mayGoOn`
 * returns false. It never rejects.
 */
export async function attemptQueue(
  options: AttemptOptions,
  queue: ClaimedQueue,
  mayGoOn: () => boolean,
): Promise<Settlement> {
  const delivered: Attempted[] = [];
  let failed: Settlement['failed'];
  for (const delivery of queue.deliveries) {
    if (!mayGoOn()) break;
    const first = delivered.length === 0 ? queue.firstAttemptedAt : options.clock.now();
    const attempted = await attemptDelivery(options, delivery, first);
    if ('nextAttemptAt' in attempted) {
      failed = attempted;
      break;
    }
    delivered.push(attempted);
  }
  tellDelivered(options.logger, delivered);
  return failed ? { queue, delivered, failed } : { queue, delivered };
}

/** One line for all of them: writing a line blocks the thread. */
function tellDelivered(logger: Logger, delivered: readonly Attempted[]): void {
  const [first] = delivered;
  if (first === undefined) return;
  const eventIds = delivered.map(({ delivery }) => delivery.eventId);
  const ms = delivered.reduce((sum, { attempt }) => sum + attempt.milliseconds, 0);
  const { body, attempt } = first.delivery;
  logger.info({ ...aboutOf(body), eventIds, attempt, status: first.attempt.status, ms }, 'delivered');
}

/** Makes one attempt: post, classify, decide. A failure has a log line of its own. It never rejects. */
async function attemptDelivery(
  options: AttemptOptions,
  delivery: ClaimedDelivery,
  firstAttemptedAt: number,
): Promise<Attempted | NonNullable<Settlement['failed']>> {
  const { clock, client, logger } = options;
  const { eventId, type, attempt } = delivery;
  const attemptedAt = clock.now();
  const start = performance.now();
  const result = await client.post(delivery.body, eventId);
  const now = clock.now();
  const outcome = classifyOutcome(result, now);
  const milliseconds = Math.round(performance.now() - start);
  const sent = { attemptedAt, milliseconds, status: outcome.status };
  if (outcome.delivered) {
    options.onAttempt('delivered');
    return { delivery, attempt: { ...sent, error: undefined } };
  }
  const { tokenId, transactionHash } = aboutOf(delivery.body);
  const line = { eventId, type, tokenId, transactionHash, attempt, status: outcome.status, ms: milliseconds };
  const { error, retryAfterMs } = outcome;
  const record = { ...sent, error };
  if (outcome.gone) {
    options.onAttempt('failed');
    logger.error(
      { ...line, reason: error },
      'the receiver is gone: nothing more is sent until it is resumed',
    );
    // The event is due as soon as the channel is resumed.
    return { delivery, attempt: record, nextAttemptAt: now, isGone: true };
  }
  const failed = { attempt, firstAttemptedAt, now, retryAfterMs };
  const dueAt = nextAttemptAt(failed, options.schedule, options.random());
  options.onAttempt(dueAt === undefined ? 'dead' : 'failed');
  if (dueAt === undefined) logger.error({ ...line, reason: error }, 'dead letter');
  else logger.warn({ ...line, reason: error, retryInMs: dueAt - now }, 'delivery failed');
  return { delivery, attempt: record, nextAttemptAt: dueAt };
}

/** The outcome of an attempt. */
type Outcome =
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

/**
 * Minimum number of attempts before an event is given up. It protects events when the clock is set forward by
 * days or the service was down for days. With the default schedule, this many attempts take about seven
 * hours.
 */
const LEAST_ATTEMPTS = 50;

/** Longest pause that a receiver may ask for. */
const LONGEST_RETRY_AFTER_MS = 24 * 3_600_000;

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

/** Longest time from a failed attempt to the next. */
export function longestPauseMs({ maxDelayMs }: RetrySchedule): number {
  return Math.max(maxDelayMs, LONGEST_RETRY_AFTER_MS);
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
