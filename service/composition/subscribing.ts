import { lookup as lookUpName } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Time } from '../base/time';
import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import type { RegistryName } from '../base/registry-name';
import type { Config } from '../config/config';
import type { Webhook } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { WebhookTarget } from '../delivery/attempt-delivery';
import type { SubscriptionRoutes } from '../http/routes/subscriptions';
import { channelsOf, type Channel } from '../outbox/channels';
import { findDeliveredFeeds, findFeeds, registryOfFeed } from '../outbox/feeds';
import { listDeliveries } from '../outbox/deliveries';
import { redeliver } from '../outbox/redeliver';
import { createSubscriptions, sinkRulesOf, targetOf } from '../subscriptions/manage-subscriptions';
import { subscriptionOf } from '../subscriptions/stored-subscriptions';
import { definedBySettings } from '../subscriptions/subscription';
import type { EventDelivery } from './event-delivery';

/** Composes the subscriptions, and the paths that manage them. `lookup` is replaced in tests. */
export function createSubscribing(
  config: Config,
  parts: { database: Database; time: Time; logger: Logger; lookup?: LookupFunction | undefined },
) {
  const { database, time, logger, lookup = lookUpName } = parts;
  const { db } = database;
  const { signingKeys } = config;
  const guard = { rules: sinkRulesOf(config), lookup };
  return {
    /**
     * The target of a channel's deliveries. Undefined without a signing key, or if the subscription cannot be
     * read: its events wait.
     *
     * @param webhook that of the settings for the channel's registry.
     */
    targetOf(
      this: void,
      { subscription, definition, secrets, state }: Channel,
      webhook: Webhook | undefined,
    ): WebhookTarget | undefined {
      if (signingKeys === undefined) return undefined;
      if (definition === null) return webhook && targetOf(definedBySettings(webhook, state), signingKeys);
      try {
        const stored = subscriptionOf({ name: subscription, definition, secrets, state }, config.secretsKey);
        return targetOf(stored, signingKeys, guard);
      } catch (error) {
        logger.error({ error, subscription }, `a subscription is not delivered: ${messageOf(error)}`);
        return undefined;
      }
    },
    /** Undefined without ADMIN_API_KEY. */
    routes(eventDelivery: Pick<EventDelivery, 'feeds' | 'refresh'>): SubscriptionRoutes | undefined {
      if (config.adminApiKey === undefined) return undefined;
      const onChanged = async (): Promise<void> => {
        await eventDelivery.refresh().catch((error: unknown) => {
          logger.warn({ error }, `changed subscriptions cannot be read now: ${messageOf(error)}`);
        });
      };
      return {
        subscriptions: createSubscriptions(config, { database, time, lookup, onChanged }),
        deliveries: (wanted) => listDeliveries(db, wanted),
        async redeliver(name, selection) {
          const results: { registry: RegistryName; queued: number; alreadyWaiting: number }[] = [];
          // Operational events are of no block.
          for (const feed of await ('fromBlock' in selection ? findFeeds : findDeliveredFeeds)(db)) {
            const [channel] = await channelsOf(db, feed, name);
            if (channel === undefined) continue;
            const { enqueued, waiting } = await redeliver(database, channel, selection, time.now());
            results.push({ registry: registryOfFeed(feed), queued: enqueued, alreadyWaiting: waiting });
          }
          await onChanged();
          return results;
        },
      };
    },
  };
}
