import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import { systemClock } from '../clock';
import type { Config } from '../config';
import type { Schema } from '../database/schema';
import type { Logger } from '../logger';
import { releaseLeases } from '../outbox/claim-deliveries';
import { createWebhookClient } from './post';
import { DEFAULT_RETRY_SCHEDULE } from './retry-schedule';
import { startDeliveryWorker, type DeliveryWorker } from './worker';

/** The delivery end of a feed. */
export interface FeedDelivery {
  /** Delivers the feed of this name from now on, and no other. */
  start(feed: string): Promise<void>;
  /** Something was enqueued. */
  wake(): void;
  /** Resolves when what is under way is settled. */
  stop(): Promise<void>;
}

const DEFAULT_TIMEOUT_MS = 15_000;
const CONCURRENT_DELIVERIES = 16;

/** Delivers to the webhook that is configured; without one, what is enqueued waits. */
export function createFeedDelivery(
  webhook: Config['webhook'],
  db: Kysely<Schema>,
  logger: Logger,
): FeedDelivery {
  if (!webhook) return { start: async () => undefined, wake: () => undefined, stop: async () => undefined };
  const timeoutMs = webhook.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const { url, signingKey, retry } = webhook;
  const client = createWebhookClient({ url, signingKey, timeoutMs, connections: CONCURRENT_DELIVERIES });
  let worker: DeliveryWorker | undefined;
  let delivered: string | undefined;
  return {
    async start(feed) {
      if (feed === delivered) return;
      await worker?.stop();
      // The database is this process's alone: whoever held a lease is gone.
      await releaseLeases(db, feed, systemClock.now());
      worker = startDeliveryWorker({
        db,
        feed,
        client,
        concurrency: CONCURRENT_DELIVERIES,
        timeoutMs,
        schedule: {
          initialDelayMs: retry?.initialDelayMs ?? DEFAULT_RETRY_SCHEDULE.initialDelayMs,
          maxDelayMs: retry?.maxDelayMs ?? DEFAULT_RETRY_SCHEDULE.maxDelayMs,
        },
        clock: systemClock,
        random: Math.random,
        newId: randomUUID,
        logger,
      });
      delivered = feed;
    },
    wake: () => worker?.wake(),
    async stop() {
      await worker?.stop();
      await client.close();
    },
  };
}
