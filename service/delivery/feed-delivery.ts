import { randomUUID } from 'node:crypto';
import { systemClock } from '../clock';
import type { Webhook } from '../webhook-settings';
import type { Database } from '../database/database';
import type { Logger } from '../logger';
import { releaseLeases } from '../outbox/claim-deliveries';
import type { AttemptOptions } from './attempt-delivery';
import { createWebhookClient } from './post';
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

/** Delivers to the webhook that is configured; without one, what is enqueued waits. */
export function createFeedDelivery(
  webhook: Webhook | undefined,
  database: Database,
  logger: Logger,
  onAttempt: AttemptOptions['onAttempt'],
): FeedDelivery {
  if (!webhook) return { start: async () => undefined, wake: () => undefined, stop: async () => undefined };
  const { url, headers, signingKey, timeoutMs, maxConcurrentDeliveries, retry } = webhook;
  const client = createWebhookClient({
    url,
    headers,
    signingKey,
    timeoutMs,
    connections: maxConcurrentDeliveries,
  });
  let worker: DeliveryWorker | undefined;
  let delivered: string | undefined;
  return {
    async start(feed) {
      if (feed === delivered) return;
      await worker?.stop();
      // A database in a folder is this process's alone: whoever held a lease is gone. On PostgreSQL others may be at work.
      if (database.engine === 'sqlite') await releaseLeases(database.db, feed, systemClock.now());
      worker = startDeliveryWorker({
        database,
        feed,
        client,
        concurrency: maxConcurrentDeliveries,
        timeoutMs,
        schedule: retry,
        clock: systemClock,
        random: Math.random,
        newId: randomUUID,
        logger,
        onAttempt,
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
