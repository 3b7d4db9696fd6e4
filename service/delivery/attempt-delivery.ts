import type { Clock } from '../base/clock';
import type { Logger } from '../base/logger';
import type { RetrySchedule } from '../config/followed-registries';
import type { ClaimedDelivery } from '../outbox/claim-deliveries';
import type { Settlement } from '../outbox/settle-deliveries';
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

/** Makes one attempt: post, classify, decide. It writes one log line with all details and never rejects. */
export async function attemptDelivery(
  options: AttemptOptions,
  delivery: ClaimedDelivery,
): Promise<Settlement> {
  const { clock, client, logger } = options;
  const { eventId, type, tokenId, transactionHash, attempt, firstAttemptedAt } = delivery;
  const attemptedAt = clock.now();
  const start = performance.now();
  const result = await client.post(delivery.body);
  const now = clock.now();
  const outcome = classifyOutcome(result, now);
  const milliseconds = Math.round(performance.now() - start);
  const line = { eventId, type, tokenId, transactionHash, attempt, status: outcome.status, ms: milliseconds };
  const record = { attemptedAt, milliseconds, status: outcome.status };
  if (outcome.delivered) {
    options.onAttempt('delivered');
    logger.info(line, 'delivered');
    return { delivery, outcome: 'delivered', attempt: { ...record, error: undefined } };
  }
  const { error, retryAfterMs } = outcome;
  const failed = { attempt, firstAttemptedAt, now, retryAfterMs };
  const dueAt = nextAttemptAt(failed, options.schedule, options.random());
  if (dueAt === undefined) {
    options.onAttempt('dead');
    logger.error({ ...line, reason: error }, 'dead letter');
    return { delivery, outcome: 'dead', attempt: { ...record, error } };
  }
  options.onAttempt('failed');
  logger.warn({ ...line, reason: error, retryInMs: dueAt - now }, 'delivery failed');
  return { delivery, outcome: 'failed', attempt: { ...record, error }, nextAttemptAt: dueAt };
}
