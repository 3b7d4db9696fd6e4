import type { Lifecycle } from '../base/lifecycle';
import type { Time } from '../base/time';
import { ConfigurationError, messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { secretMasker } from '../base/mask-secrets';
import { registryName, type RegistryName } from '../base/registry-name';
import { createFinalBlockReading } from '../chain/finality';
import { connectNodes } from '../chain/connect-nodes';
import type { Config } from '../config/config';
import type { FollowedRegistry } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { DeliverySlots } from '../delivery/delivery-slots';
import type { WebhookTarget } from '../delivery/attempt-delivery';
import { createFeedDelivery, type FeedDeliveryOptions } from '../delivery/feed-delivery';
import {
  followedRegistryOf,
  readRegistries,
  type StoredRegistry,
} from '../followed-registries/stored-registries';
import { OPERATIONS } from '../events/conditions';
import { changeVersionOf, pollChanges } from '../outbox/changes';
import type { Channel } from '../outbox/channels';
import { findAllFeeds, registryOfFeed } from '../outbox/feeds';
import { figuresOf } from '../outbox/outbox-figures';
import { purgeEvents, removeLeftoverQueues } from '../outbox/purge-events';
import { newFeedStatus, setState } from '../watcher/feed-status';
import { RegistryFollower, restorePurged } from '../watcher/follow-registry';

/** The event delivery of one registry. */
export type DeliveredFeed = ReturnType<typeof startFeed>;

/** Event delivery, from the chain to the subscribers. */
export type EventDelivery = Awaited<ReturnType<typeof startEventDelivery>>;

/** The parts that all feeds share. */
interface FeedParts {
  database: Database;
  time: Time;
  lifecycle: Lifecycle;
  logger: Logger;
  slots: DeliverySlots;
  /** Undefined: the events of the channel wait. */
  targetOf: (channel: Channel, webhook: FollowedRegistry['webhook']) => WebhookTarget | undefined;
}

/**
 * Starts watcher → outbox → delivery for each registry of the settings and of the database. The registries do
 * not wait for each other.
 */
export async function startEventDelivery(config: Config, parts: FeedParts) {
  const { database, time, logger } = parts;
  const { db } = database;
  const running = new Map<RegistryName, { version: string; feed: DeliveredFeed }>();
  /** A feed that stops waits for its deliveries. Until then it must not be started again. */
  const stopping = new Map<RegistryName, Promise<void>>();
  /** The feeds that are to run. A feed that runs with another version is replaced. */
  let wanted = new Map<RegistryName, { version: string; start: () => DeliveredFeed }>();
  let lastRefresh: Promise<unknown> = Promise.resolve();
  const feeds = (): DeliveredFeed[] => [...running.values()].map(({ feed }) => feed);
  const operations = createFeedDelivery({
    ...parts,
    // The settings have no webhook for operational events.
    targetOf: (channel) => parts.targetOf(channel, undefined),
    // No chain has them.
    restorePurged: async () => undefined,
    registry: OPERATIONS,
  });

  /** Stops the feeds that are not wanted, and starts those that are missing. */
  function apply(): void {
    for (const [name, { version, feed }] of running) {
      if (wanted.get(name)?.version === version) continue;
      running.delete(name);
      const stopped = feed
        .stop()
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
    for (const one of config.registries)
      next.set(registryName(one.network.chainId, one.address), {
        version: 'settings',
        start: () => startFeed(one, config, parts),
      });
    for (const one of await readRegistries(db)) {
      const name = registryName(one.chainId, one.address);
      // A registry of the settings is followed as they say, whatever is stored.
      if (next.get(name)?.version !== 'settings')
        next.set(name, { version: String(one.addedAt), start: () => startStored(one, config, parts) });
    }
    wanted = next;
    apply();
    await Promise.all([operations, ...feeds()].map((feed) => feed.refresh()));
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
    /** The feeds that this process reads and delivers now. */
    get feeds() {
      return feeds();
    },
    /** The feed of a registry, if it runs. */
    feedOf: (registry: RegistryName) => running.get(registry)?.feed,
    /**
     * Follows the registries and subscriptions that are stored now. Call it after a change. Other processes
     * notice the change by themselves.
     */
    refresh,
    /** Figures of the outboxes, for registries whose feeds are known by now. */
    async figures(this: void) {
      const opened = feeds().flatMap((feed) => feed.opened ?? []);
      const figures = await figuresOf(db, opened);
      return figures.map((one) => ({ ...one, registry: registryOfFeed(one.feed) }));
    },
    /**
     * Removes events of the followed registries, and operational events, that were recorded and last sent
     * before a time (epoch milliseconds) and are not needed any more. Resolves to their number.
     */
    async purge(this: void, before: number, signal: AbortSignal): Promise<number> {
      let removed = 0;
      for (const registry of running.keys())
        for (const feed of await findAllFeeds(db, registry))
          removed += await purgeEvents(time, database, feed, before, signal);
      return removed + (await purgeEvents(time, database, OPERATIONS, before, signal));
    },
    async stop(): Promise<void> {
      ending.abort();
      await Promise.all([polling.stop(), removing]);
      await lastRefresh;
      wanted = new Map();
      apply();
      await Promise.all([operations.stop(), ...stopping.values()]);
    },
  };
}

/** Starts the feed of a registry, or gives a stopped one if the settings do not allow to follow it. */
function startStored(stored: StoredRegistry, config: Config, parts: FeedParts): DeliveredFeed {
  const { time, logger } = parts;
  try {
    return startFeed(followedRegistryOf(stored, config), config, parts);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const { network, chainId, address: registry } = stored;
    const { code, message: reason, remedy } = error;
    const name = registryName(chainId, registry);
    const status = newFeedStatus(time.now());
    setState(status, 'stopped', time.now(), { code, reason, remedy });
    logger.error({ error, code, registry: name }, `a registry cannot be followed: ${reason}`);
    return {
      network,
      chainId,
      registry,
      status,
      nodes: () => undefined,
      opened: undefined,
      hasWebhook: false,
      isReader: async () => true,
      targetOf: () => undefined,
      refresh: async () => undefined,
      readAgain: () => undefined,
      stop: async () => undefined,
    };
  }
}

function startFeed(registry: FollowedRegistry, config: Config, parts: FeedParts) {
  const { database, time, lifecycle, slots } = parts;
  const { network, rpcUrls, address, startBlock, confirmations, pauses } = registry;
  const registryAddress = address.toLowerCase();
  const name = registryName(network.chainId, address);
  const logger = parts.logger.child({ registry: name });
  if (!registry.webhook) logger.warn('events are stored, not delivered: no webhook is configured');
  const { client, checkChain, report } = connectNodes(rpcUrls, network, time, 'bulk', logger);
  const identity = { chainKey: network.chainKey, chainId: network.chainId, registryAddress };
  const read = { client, lifecycle, registryAddress: address, identity, startBlock, database, time };
  const targetOf: FeedDeliveryOptions['targetOf'] = (channel) => parts.targetOf(channel, registry.webhook);
  const delivery = createFeedDelivery({
    database,
    time,
    logger,
    slots,
    targetOf,
    restorePurged: (feed, blocks, signal) => restorePurged(read, feed, { ...blocks, signal }),
    lifecycle,
    registry: name,
  });
  let opened: string | undefined;
  const follower = new RegistryFollower({
    ...read,
    readFinalBlock: createFinalBlockReading(client, network, confirmations),
    finalityDepth: config.finalityDepth,
    pauses,
    logger,
    mask: secretMasker(config.secrets),
    checkChain,
    async onOpened(feed) {
      opened = feed;
      await delivery.start(feed);
    },
    onHeld: () => delivery.hold(),
    onDue(events, channels) {
      if (events > 0) lifecycle.emit('recorded', name, events);
      delivery.wake(channels);
    },
  });
  return {
    network: network.name,
    chainId: network.chainId,
    registry: registryAddress,
    status: follower.status,
    nodes: report,
    /** Whether the settings have a webhook for it: the sink of the subscription `default`. */
    hasWebhook: registry.webhook !== undefined,
    isReader: () => follower.isReader(),
    /** The feed's name, once it is known. */
    get opened() {
      return opened;
    },
    /** The webhook of a channel now. Undefined: its events wait. */
    targetOf,
    /** Call it after subscriptions have changed. */
    refresh: () => delivery.refresh(),
    /** Reads a block again after it has been read, because an event of its transactions is missing. */
    readAgain: (block: number): void => follower.readAgain(block),
    async stop(): Promise<void> {
      await Promise.all([follower.stop(), delivery.stop()]);
      client.close();
    },
  };
}
