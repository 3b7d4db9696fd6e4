import type { Kysely } from 'kysely';
import type { Clock } from '../clock';
import type { Schema } from '../database/schema';
import { messageOf } from '../errors';
import type { Logger } from '../logger';
import { claimDeliveries, nextDueAt, type ClaimedDelivery } from '../outbox/claim-deliveries';
import { completeDelivery, failDelivery } from '../outbox/settle-delivery';
import { classifyOutcome } from './classify-outcome';
import type { WebhookClient } from './post';
import { retryDelayMs, type RetrySchedule } from './retry-schedule';

/** Delivers the events of one feed to its webhook. */
export interface DeliveryWorker {
  /** Looks for due deliveries now: something was enqueued. */
  wake(): void;
  /** Claims nothing more; resolves when what is under way is settled. */
  stop(): Promise<void>;
}

/** What the worker needs. `random` is from 0 to below 1. */
export interface DeliveryWorkerOptions {
  db: Kysely<Schema>;
  feed: string;
  client: WebhookClient;
  concurrency: number;
  timeoutMs: number;
  schedule: RetrySchedule;
  clock: Clock;
  random: () => number;
  newId: () => string;
  logger: Logger;
}

/** Time past the request's timeout in which an attempt is settled before its claim would fall due again. */
const LEASE_MARGIN_MS = 30_000;
/** Longest sleep: bounds what a clock that is set forward can cost. */
const LONGEST_SLEEP_MS = 60_000;
const PAUSE_AFTER_DATABASE_ERROR_MS = 1_000;

/** Starts the worker. */
export function startDeliveryWorker(options: DeliveryWorkerOptions): DeliveryWorker {
  const { db, feed, clock, logger } = options;
  const underWay = new Set<Promise<void>>();
  let stopped = false;
  let signalled = false;
  let wakeUp: (() => void) | undefined;

  const wake = (): void => {
    signalled = true;
    wakeUp?.();
  };

  async function sleep(ms: number): Promise<void> {
    if (signalled || stopped || ms <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    wakeUp = undefined;
  }

  function begin(delivery: ClaimedDelivery): void {
    const attempt = deliver(options, delivery)
      .catch((error: unknown) => logger.error({ error, eventId: delivery.eventId }, 'delivery not settled'))
      .finally(() => {
        underWay.delete(attempt);
        wake();
      });
    underWay.add(attempt);
  }

  async function step(): Promise<void> {
    signalled = false;
    const limit = options.concurrency - underWay.size;
    if (limit === 0) return sleep(LONGEST_SLEEP_MS);
    const now = clock.now();
    const leaseMs = options.timeoutMs + LEASE_MARGIN_MS;
    const claimed = await claimDeliveries(db, { feed, lease: options.newId(), limit, now, leaseMs });
    claimed.forEach(begin);
    if (claimed.length === limit) return;
    const dueAt = await nextDueAt(db, feed);
    await sleep(Math.min((dueAt ?? Infinity) - clock.now(), LONGEST_SLEEP_MS));
  }

  async function run(): Promise<void> {
    while (!stopped) {
      await step().catch(async (error: unknown) => {
        logger.error({ error }, `deliveries cannot be claimed: ${messageOf(error)}`);
        signalled = false;
        await sleep(PAUSE_AFTER_DATABASE_ERROR_MS);
      });
    }
    await Promise.all(underWay);
  }

  const finished = run();
  return {
    wake,
    async stop() {
      stopped = true;
      wake();
      await finished;
    },
  };
}

/** One attempt: post → classify → record. One log line says everything about it. */
async function deliver(options: DeliveryWorkerOptions, delivery: ClaimedDelivery): Promise<void> {
  const { db, feed, clock, client, logger } = options;
  const { eventId, type, tokenId, transactionHash, attempt } = delivery;
  const attemptedAt = clock.now();
  const start = performance.now();
  const outcome = classifyOutcome(await client.post(delivery.body), clock.now());
  const milliseconds = Math.round(performance.now() - start);
  const line = { eventId, type, tokenId, transactionHash, attempt, status: outcome.status, ms: milliseconds };
  if (outcome.delivered) {
    const record = { attemptedAt, milliseconds, status: outcome.status, error: undefined };
    await completeDelivery(db, feed, delivery, record, clock.now());
    logger.info(line, 'delivered');
    return;
  }
  const { status, error, retryAfterMs } = outcome;
  const delayMs = retryDelayMs(attempt, options.schedule, retryAfterMs, options.random());
  await failDelivery(db, feed, delivery, { attemptedAt, milliseconds, status, error }, clock.now() + delayMs);
  logger.warn({ ...line, reason: error, retryInMs: delayMs }, 'delivery failed');
}
