import type { Clock } from '../base/clock';
import type { Logger } from '../base/logger';
import type { RetrySchedule } from '../config/followed-registries';
import type { ClaimedDelivery, ClaimedQueue } from '../outbox/claim-queues';
import { aboutOf } from '../events/cloud-event';
import type { Attempted, Settlement } from '../outbox/settle-queues';
import { classifyOutcome } from './classify-outcome';
import type { WebhookClient } from './post';
import { nextAttemptAt } from './retry-schedule';

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
