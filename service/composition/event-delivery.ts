import { randomUUID } from 'node:crypto';
import { ConfigurationError, messageOf } from '../base/errors';
import { secretMasker } from '../base/mask-secrets';
import { registryName, type RegistryName } from '../base/registry-name';
import { createFinalBlockReading } from '../chain/finality';
import { connectNodes } from '../chain/connect-nodes';
import type { FollowedRegistry, Webhook } from '../config/followed-registries';
import { createDeliverers, type Deliverers } from '../delivery/deliverers';
import type { DeliverySlots } from '../delivery/delivery-slots';
import type { WebhookTarget } from '../delivery/attempt-delivery';
import { createFeedDelivery, type FeedDelivery } from '../delivery/feed-delivery';
import {
  followedRegistryOf,
  readRegistries,
  type StoredRegistry,
} from '../followed-registries/stored-registries';
import { OPERATIONS } from '../events/conditions';
import { tracesOfTokens } from '../journal/read-issuances';
import { changeVersionOf, pollChanges } from '../outbox/changes';
import type { Channel } from '../outbox/channels';
import { findAllFeeds } from '../outbox/feeds';
import { outboxFiguresOf, type OutboxFigures } from '../outbox/outbox-figures';
import { purgeEvents, removeLeftoverQueues } from '../outbox/purge-events';
import { sinkRulesOf, targetOf } from '../subscriptions/manage-subscriptions';
import { subscriptionOf } from '../subscriptions/stored-subscriptions';
import { definedBySettings } from '../subscriptions/subscription';
import { newFeedStatus, setState, type FollowedFeed } from '../watcher/feed-status';
import { RegistryFollower, restorePurged } from '../watcher/follow-registry';
import type { Core } from './core';

/** The event delivery of one registry. */
export interface DeliveredFeed extends FollowedFeed {
  /** The sink of the subscription `default`, if the settings have one for the registry. */
  readonly webhook?: Webhook | undefined;
  /** The parts that read and deliver. Undefined: the settings do not allow to follow the registry. */
  readonly running?: {
    readonly followed: FollowedRegistry;
    readonly follower: RegistryFollower;
    readonly delivery: FeedDelivery;
    stop(this: void): Promise<void>;
  };
}

/** Event delivery, from the chain to the subscribers. */
export interface EventDelivery {
  /** The feeds that this process reads and delivers now. */
  feeds(this: void): readonly DeliveredFeed[];
  /** The feed of a registry, if it runs. */
  feedOf(this: void, registry: RegistryName): DeliveredFeed | undefined;
  /** The sink of a feed's channel now. Undefined: its events wait, or the feed does not run here. */
  targetOf(this: void, feed: string, channel: Channel): WebhookTarget | undefined;
  /**
   * Follows the registries and subscriptions that are stored now. Call it after a change. Other processes
   * notice the change by themselves.
   */
  refresh(this: void): Promise<void>;
  /** Figures of the outboxes, for registries whose feeds are known by now. */
  figures(this: void): Promise<OutboxFigures[]>;
  /**
   * Removes events of the followed registries, and operational events, that were recorded and last sent
   * before a time (epoch milliseconds) and are not needed any more. Resolves to their number.
   */
  purge(this: void, before: number, signal: AbortSignal): Promise<number>;
  stop(): Promise<void>;
}

/** What all feeds share. */
interface Delivering extends Core {
  readonly slots: DeliverySlots;
  readonly deliverers: Deliverers;
  /** @param webhook that of the settings for the channel's registry. Operational events have none. */
  targetOf(this: void, channel: Channel, webhook?: Webhook): WebhookTarget | undefined;
}

/**
 * Starts watcher → outbox → delivery for each registry of the settings and of the database. The registries do
 * not wait for each other.
 */
export async function startEventDelivery(core: Core, slots: DeliverySlots): Promise<EventDelivery> {
  const { config, database, time, logger } = core;
  const { db } = database;
  const deliverers = createDeliverers(database, { id: randomUUID(), time, logger });
  const delivering: Delivering = { ...core, slots, deliverers, targetOf: targetsOf(core) };
  const running = new Map<RegistryName, { version: string; feed: DeliveredFeed }>();
  /** A feed that stops waits for its deliveries. Until then it must not be started again. */
  const stopping = new Map<RegistryName, Promise<void>>();
  /** The feeds that are to run. A feed that runs with another version is replaced. */
  let wanted = new Map<RegistryName, { version: string; start: () => DeliveredFeed }>();
  let lastRefresh: Promise<unknown> = Promise.resolve();
  const feeds = (): DeliveredFeed[] => [...running.values()].map(({ feed }) => feed);
  const operations = createFeedDelivery({
    ...delivering,
    // No chain has them.
    restorePurged: async () => undefined,
    registry: OPERATIONS,
  });

  /** Stops the feeds that are not wanted, and starts those that are missing. */
  function apply(): void {
    for (const [name, { version, feed }] of running) {
      if (wanted.get(name)?.version === version) continue;
      running.delete(name);
      const stopped = Promise.resolve(feed.running?.stop())
        .catch((error: unknown) => logger.error({ error, registry: name }, messageOf(error)))
        .then(() => {
          stopping.delete(name);
          apply();
        });
      stopping.set(name, stopped);
    }
    for (const [name, { version, start }] of wanted)
      if (!running.has(name) && !stopping.has(name)) running.set(name, { version, feed: start() });
  }

  async function follow(): Promise<void> {
    // A feed that has stopped meanwhile applies `wanted`, so it is replaced once it is complete.
    const next: typeof wanted = new Map();
    for (const registry of config.registries)
      next.set(registryName(registry.network.chainId, registry.address), {
        version: 'settings',
        start: () => startFeed(registry, delivering),
      });
    for (const stored of await readRegistries(db)) {
      const name = registryName(stored.chainId, stored.address);
      // A registry of the settings is followed as they say, whatever is stored.
      if (!next.has(name))
        next.set(name, { version: String(stored.addedAt), start: () => startStored(stored, delivering) });
    }
    wanted = next;
    apply();
    await Promise.all([operations.refresh(), ...feeds().map(({ running }) => running?.delivery.refresh())]);
  }

  /** Refreshes run one after the other, so that the last one reads the newest rows. */
  function refresh(): Promise<void> {
    const next = lastRefresh.then(follow);
    lastRefresh = next.catch(() => undefined);
    return next;
  }

  const version = await changeVersionOf(db);
  await operations.start(OPERATIONS);
  await refresh();
  if (running.size === 0) logger.warn('no events are read: TOKEN_REGISTRY_ADDRESS is not configured');
  const ending = new AbortController();
  const removing = removeLeftoverQueues(database, ending.signal).catch((error: unknown) => {
    logger.warn({ error }, `queues of deleted subscriptions cannot be removed now: ${messageOf(error)}`);
  });
  const polling = pollChanges(database, { version, onChange: refresh, time, logger });
  return {
    feeds,
    feedOf: (registry) => running.get(registry)?.feed,
    targetOf(feed, channel) {
      const delivered = feeds().find((one) => one.running?.follower.opened === feed);
      return delivered && delivering.targetOf(channel, delivered.webhook);
    },
    refresh,
    figures: () =>
      outboxFiguresOf(
        db,
        feeds().flatMap((one) => one.running?.follower.opened ?? []),
      ),
    async purge(before, signal) {
      let removed = 0;
      for (const registry of running.keys())
        for (const feed of await findAllFeeds(db, registry))
          removed += await purgeEvents(time, database, feed, before, signal);
      return removed + (await purgeEvents(time, database, OPERATIONS, before, signal));
    },
    async stop() {
      ending.abort();
      await Promise.all([polling.stop(), removing]);
      await lastRefresh;
      wanted = new Map();
      apply();
      await Promise.all([operations.stop(), ...stopping.values()]);
    },
  };
}

/** The targets of channels' deliveries now. Undefined without a signing key, or if one cannot be read. */
function targetsOf({ config, logger, lookup }: Core): Delivering['targetOf'] {
  const { signingKeys } = config;
  return ({ subscription: name, definition, secrets, state }, webhook) => {
    if (signingKeys === undefined) return undefined;
    if (definition === null) return webhook && targetOf(definedBySettings(webhook, state), signingKeys);
    try {
      const subscription = subscriptionOf({ name, definition, secrets, state }, config.secretsKey);
      return targetOf(subscription, signingKeys, { rules: sinkRulesOf(config, subscription), lookup });
    } catch (error) {
      const text = `a subscription is not delivered: ${messageOf(error)}`;
      logger.error({ error, subscription: name }, text);
      return undefined;
    }
  };
}

/** Starts the feed of a registry, or gives a stopped one if the settings do not allow to follow it. */
function startStored(stored: StoredRegistry, delivering: Delivering): DeliveredFeed {
  const { config, time, logger } = delivering;
  try {
    return startFeed(followedRegistryOf(stored, config), delivering);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const { network, chainId, address: registry } = stored;
    const { code, message: reason, remedy } = error;
    const status = newFeedStatus(time.now());
    setState(status, 'stopped', time.now(), { code, reason, remedy });
    const name = registryName(chainId, registry);
    logger.error({ error, code, registry: name }, `a registry cannot be followed: ${reason}`);
    return { name, network, chainId, registry, status };
  }
}

function startFeed(registry: FollowedRegistry, delivering: Delivering): DeliveredFeed {
  const { config, database, time } = delivering;
  const { network, rpcUrls, address, startBlock, confirmations, pauses, webhook } = registry;
  const { chainId, chainKey } = network;
  const registryAddress = address.toLowerCase();
  const name = registryName(chainId, address);
  const logger = delivering.logger.child({ registry: name });
  if (!webhook) logger.warn('events are stored, not delivered: no webhook is configured');
  const { client, checkChain, report } = connectNodes(rpcUrls, network, time, 'bulk', logger);
  const identity = { chainKey, chainId, registryAddress };
  const read = { ...delivering, logger, client, identity, registryAddress: address, startBlock };
  const delivery = createFeedDelivery({
    ...delivering,
    logger,
    targetOf: (channel) => delivering.targetOf(channel, webhook),
    restorePurged: (feed, blocks, signal) => restorePurged(read, feed, { ...blocks, signal }),
    registry: name,
  });
  const follower = new RegistryFollower({
    ...read,
    // The only part of issuing that event delivery uses.
    tracesOf: (tokenIds) => tracesOfTokens(database.db, name, tokenIds),
    readFinalBlock: createFinalBlockReading(client, network, confirmations),
    finalityDepth: config.finalityDepth,
    pauses,
    mask: secretMasker(config.secrets),
    checkChain,
    delivery,
  });
  return {
    name,
    network: network.name,
    chainId,
    registry: registryAddress,
    status: follower.status,
    nodes: report,
    webhook,
    running: {
      followed: registry,
      follower,
      delivery,
      async stop() {
        await Promise.all([follower.stop(), delivery.stop()]);
        client.close();
      },
    },
  };
}
