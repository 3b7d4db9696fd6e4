import { randomUUID } from 'node:crypto';
import { lookup as lookUpName } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../base/clock';
import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import type { SinkRules } from '../base/sink-rules';
import { registryName, type RegistryName } from '../base/registry-name';
import type { Config } from '../config/config';
import type { Webhook } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { ChannelTarget } from '../delivery/feed-delivery';
import { readRegistries } from '../followed-registries/stored-registries';
import type { SubscriptionRoutes } from '../http/routes/subscriptions';
import { channelsOf, type Channel } from '../outbox/channels';
import { findFeeds, registryOfFeed } from '../outbox/feeds';
import { redeliver } from '../outbox/redeliver';
import { listUndelivered } from '../outbox/undelivered';
import {
  createSubscriptions,
  targetOf,
  type Subscriptions,
  type SubscriptionsOptions,
} from '../subscriptions/manage-subscriptions';
import { definedBySettings, presentDefault } from '../subscriptions/present-subscription';
import { createSecretsCipher } from '../subscriptions/secrets';
import { defaultStateOf, setDefaultState, subscriptionOf } from '../subscriptions/stored-subscriptions';
import { subscriptionsHealth, withFailures, type HealthQuery } from '../subscriptions/subscription-health';
import type { EventDelivery } from './event-delivery';

/** The subscriptions, and the paths that manage them. */
export type Subscribing = ReturnType<typeof createSubscribing>;

/** The rules for the sinks of subscriptions that the API made. */
export function sinkRulesOf({ allowPrivateSinks, network }: Config): SinkRules {
  return { allowPrivate: allowPrivateSinks, allowLoopback: network.local };
}

/** The subscriptions of the API that are stored in the database. */
export function storedSubscriptions(
  config: Config,
  parts: Pick<SubscriptionsOptions, 'database' | 'clock' | 'lookup' | 'onChanged'>,
): Subscriptions {
  return createSubscriptions({
    ...parts,
    cipher: createSecretsCipher(config.secretsKey),
    rules: sinkRulesOf(config),
    signingKeys: config.signingKeys,
    newId: randomUUID,
  });
}

/** Composes the subscriptions. `lookup` is replaced in tests. */
export function createSubscribing(
  config: Config,
  parts: { database: Database; clock: Clock; logger: Logger; lookup?: LookupFunction | undefined },
) {
  const { database, clock, logger, lookup = lookUpName } = parts;
  const { db } = database;
  const { signingKeys } = config;
  const cipher = createSecretsCipher(config.secretsKey);
  const guard = { rules: sinkRulesOf(config), lookup };
  return {
    /** The states of all subscriptions. */
    health: async () => subscriptionsHealth(db, await healthQueryOf(config, db, clock.now())),
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
    ): ChannelTarget | undefined {
      if (signingKeys === undefined) return undefined;
      if (definition === null) return webhook && targetOf(definedBySettings(webhook, state), signingKeys);
      try {
        const stored = subscriptionOf({ name: subscription, definition, secrets, state }, cipher);
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
        subscriptions: storedSubscriptions(config, { database, clock, lookup, onChanged }),
        async defaultSubscription() {
          const open = eventDelivery.feeds.flatMap(({ opened }) => opened ?? []);
          return presentDefault(config.registries, await defaultStateOf(db, open));
        },
        async setDefaultState(state) {
          await setDefaultState(database, state, clock.now());
          await onChanged();
        },
        withFailures: async (shown) => withFailures(db, shown, await healthQueryOf(config, db, clock.now())),
        deliveries: (query) => listUndelivered(db, query),
        async redeliver(name, selection) {
          const results: { registry: RegistryName; queued: number; alreadyWaiting: number }[] = [];
          for (const feed of await findFeeds(db)) {
            const [channel] = await channelsOf(db, feed, name);
            if (channel === undefined) continue;
            const { enqueued, waiting } = await redeliver(database, channel, selection, clock.now());
            results.push({ registry: registryOfFeed(feed), queued: enqueued, alreadyWaiting: waiting });
          }
          await onChanged();
          return results;
        },
      };
    },
  };
}

/** The feeds and limits of the health of subscriptions. Registries that are not followed do not count. */
export async function healthQueryOf(
  config: Pick<Config, 'registries' | 'subscriptionFailingAfterMinutes'>,
  db: Database['db'],
  now: number,
): Promise<HealthQuery> {
  const followed = new Set([
    ...config.registries.map(({ network, address }) => registryName(network.chainId, address)),
    ...(await readRegistries(db)).map(({ chainId, address }) => registryName(chainId, address)),
  ]);
  return {
    feeds: (await findFeeds(db)).filter((feed) => followed.has(registryOfFeed(feed))),
    failingBefore: now - config.subscriptionFailingAfterMinutes * 60_000,
    hasDefault: config.registries.some(({ webhook }) => webhook !== undefined),
  };
}
