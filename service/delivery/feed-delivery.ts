import { randomUUID } from 'node:crypto';
import type { Clock } from '../base/clock';
import type { Webhook } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { Logger } from '../base/logger';
import { releaseLeases } from '../outbox/claim-deliveries';
import type { AttemptOptions } from './attempt-delivery';
import { createWebhookClient } from './post';
import { startDeliveryWorker, type DeliveryWorker } from './worker';

/** The delivery side of a feed. */
export interface FeedDelivery {
  /** Delivers this feed, and no other, from now on. */
  start(feed: string): Promise<void>;
  /** To be called when events were enqueued. */
  wake(): void;
  /** Releases the claimed deliveries: nothing may be sent until `wake` is called. */
  hold(): void;
  /** Resolves when the deliveries under way are settled. */
  stop(): Promise<void>;
}

const WITHOUT_WEBHOOK: FeedDelivery = {
  start: async () => undefined,
  wake: () => undefined,
  hold: () => undefined,
  stop: async () => undefined,
};

/** Delivers to the configured webhook. Without one, events wait in the outbox. */
export function createFeedDelivery(
  webhook: Webhook | undefined,
  database: Database,
  { clock, logger }: { clock: Clock; logger: Logger },
  onAttempt: AttemptOptions['onAttempt'],
): FeedDelivery {
  if (!webhook) return WITHOUT_WEBHOOK;
  const { url, headers, signingKeys, timeoutMs, maxConcurrentDeliveries, retry } = webhook;
  const client = createWebhookClient({
    url,
    headers,
    signingKeys,
    clock,
    timeoutMs,
    connections: maxConcurrentDeliveries,
  });
  let worker: DeliveryWorker | undefined;
  let delivered: string | undefined;
  let isStopped = false;
  return {
    async start(feed) {
      if (feed === delivered || isStopped) return;
      await worker?.stop();
      delivered = undefined;
      // A SQLite database belongs to this process alone, so a holder of a lease has ended. On PostgreSQL
      // other processes may hold leases.
      if (database.engine === 'sqlite') await releaseLeases(database.db, feed, clock.now());
      if (isStopped) return;
      worker = startDeliveryWorker({
        database,
        feed,
        client,
        concurrency: maxConcurrentDeliveries,
        timeoutMs,
        schedule: retry,
        clock,
        random: Math.random,
        newId: randomUUID,
        logger,
        onAttempt,
      });
      delivered = feed;
    },
    wake: () => worker?.wake(),
    hold: () => worker?.hold(),
    async stop() {
      isStopped = true;
      await worker?.stop();
      await client.close();
    },
  };
}
