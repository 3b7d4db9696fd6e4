import type { Clock } from '../base/clock';
import { ConfigurationError, messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { secretMasker } from '../base/mask-secrets';
import { registryName, type RegistryName } from '../base/registry-name';
import { createChainCheck, createRpcClient } from '../chain/rpc-client';
import type { Config } from '../config/config';
import type { FollowedRegistry } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { DeliverySlots } from '../delivery/delivery-slots';
import { createFeedDelivery, type FeedDeliveryOptions } from '../delivery/feed-delivery';
import { createFeedSet, type DeliveredFeed, type WantedFeed } from './feed-set';
import {
  followedRegistryOf,
  readRegistries,
  type StoredRegistry,
} from '../followed-registries/stored-registries';
import { changeVersionOf, pollChanges } from '../outbox/changes';
import { findAllFeeds } from '../outbox/feeds';
import { outboxFiguresOf, type OutboxFigures } from '../outbox/outbox-figures';
import { purgeEvents, removeLeftoverQueues } from '../outbox/purge-events';
import { newFeedStatus, setState } from '../watcher/feed-status';
import { followRegistry } from '../watcher/follow-registry';
import { restorePurged } from '../watcher/restore-purged';

/** Receives the events that the service counts. */
export interface EventDeliveryObserver {
  recorded(registry: RegistryName, events: number): void;
  attempted(registry: RegistryName, outcome: 'delivered' | 'failed' | 'dead'): void;
}

/** Event delivery, from the chain to the subscribers. */
export interface EventDelivery {
  /** The feeds that run now. */
  readonly feeds: readonly DeliveredFeed[];
  /** Names of the feeds that are delivered. */
  openFeeds(this: void): string[];
  /**
   * Follows the registries and subscriptions that are stored now. Call it after a change. Other processes
   * notice the change by themselves.
   */
  refresh(this: void): Promise<void>;
  /** Figures of the outboxes, for registries whose feeds are known by now. */
  figures(): Promise<({ registry: RegistryName } & OutboxFigures)[]>;
  /**
   * Removes events of the followed registries that were recorded and last sent before a time (epoch
   * milliseconds) and are not needed any more. Resolves to their number.
   */
  purge(this: void, before: number, signal: AbortSignal): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Starts watcher → outbox → delivery for each registry of the settings and of the database. The registries do
 * not wait for each other.
 */
export async function startEventDelivery(
  config: Config,
  parts: Omit<FeedParts, 'config'>,
): Promise<EventDelivery> {
  const { database, logger } = parts;
  const feedParts = { config, ...parts };
  const feeds = createFeedSet(logger);
  const ofSettings = config.registries.map((registry) => settingsFeed(registry, feedParts));
  const namesOfSettings = ofSettings.map(({ name }) => name);
  let lastRefresh: Promise<unknown> = Promise.resolve();

  async function follow(): Promise<void> {
    const stored = (await readRegistries(database.db)).filter(
      (one) => !namesOfSettings.includes(registryName(one.chainId, one.address)),
    );
    feeds.change([...ofSettings, ...stored.map((one) => storedFeed(one, feedParts))]);
    await Promise.all(feeds.running.map((feed) => feed.refresh()));
  }

  /** Refreshes run one after the other, so that the last one reads the newest rows. */
  function refresh(): Promise<void> {
    const next = lastRefresh.then(follow);
    lastRefresh = next.catch(() => undefined);
    return next;
  }

  const version = await changeVersionOf(database.db);
  await refresh();
  if (feeds.running.length === 0) logger.warn('no events are read: TOKEN_REGISTRY_ADDRESS is not configured');
  const stopping = new AbortController();
  const removing = removeLeftoverQueues(database, stopping.signal).catch((error: unknown) => {
    logger.warn({ error }, `queues of deleted subscriptions cannot be removed now: ${messageOf(error)}`);
  });
  const polling = pollChanges(database, { version, onChange: refresh, logger });
  return {
    get feeds() {
      return feeds.running;
    },
    openFeeds: () => feeds.running.flatMap(({ opened }) => opened ?? []),
    refresh,
    figures: async () =>
      Promise.all(
        feeds.running.flatMap(({ chainId, registry, opened }) =>
          opened === undefined
            ? []
            : outboxFiguresOf(database.db, opened).then((figures) => ({
                registry: registryName(chainId, registry),
                ...figures,
              })),
        ),
      ),
    async purge(before, signal) {
      let removed = 0;
      for (const { chainId, registry } of feeds.running)
        for (const feed of await findAllFeeds(database.db, registryName(chainId, registry)))
          removed += await purgeEvents(database, feed, before, signal);
      return removed;
    },
    async stop() {
      stopping.abort();
      await Promise.all([polling.stop(), removing]);
      await lastRefresh;
      await feeds.stop();
    },
  };
}

/** The parts that all feeds share. */
interface FeedParts {
  config: Config;
  database: Database;
  clock: Clock;
  observer: EventDeliveryObserver;
  logger: Logger;
  slots: DeliverySlots;
  /** The webhook of a subscription of the API. Undefined: its events wait. */
  targetOf: FeedDeliveryOptions['targetOf'];
  /** Shorter in tests. */
  progressEveryMs?: number | undefined;
}

/** Time between two log lines about the progress of a catch-up. */
const PROGRESS_EVERY_MS = 10_000;

function settingsFeed(registry: FollowedRegistry, parts: FeedParts): WantedFeed {
  const { network, address } = registry;
  const name = registryName(network.chainId, address);
  return { name, version: 'settings', start: () => startFeed(registry, parts) };
}

function storedFeed(stored: StoredRegistry, parts: FeedParts): WantedFeed {
  return {
    name: registryName(stored.chainId, stored.address),
    version: String(stored.addedAt),
    start() {
      try {
        return startFeed(followedRegistryOf(stored, parts.config), parts);
      } catch (error) {
        if (!(error instanceof ConfigurationError)) throw error;
        return stoppedFeed(stored, error, parts);
      }
    },
  };
}

/** The feed of a registry that cannot be followed under the present settings. */
function stoppedFeed(stored: StoredRegistry, error: ConfigurationError, parts: FeedParts): DeliveredFeed {
  const { network, chainId, address: registry } = stored;
  const { code, message: reason } = error;
  const status = newFeedStatus(parts.clock.now());
  setState(status, 'stopped', parts.clock.now(), { code, reason });
  parts.logger.error(
    { error, code, registry: registryName(stored.chainId, stored.address) },
    `a registry cannot be followed: ${reason}`,
  );
  const nothing = async (): Promise<void> => undefined;
  const targetOf = (): undefined => undefined;
  return {
    network,
    chainId,
    registry,
    status,
    opened: undefined,
    targetOf,
    refresh: nothing,
    readAgain: () => undefined,
    stop: nothing,
  };
}

function startFeed(registry: FollowedRegistry, parts: FeedParts): DeliveredFeed {
  const { config, database, clock, observer, slots } = parts;
  const { network, rpcUrl, address } = registry;
  const registryAddress = address.toLowerCase();
  const name = registryName(network.chainId, address);
  const logger = parts.logger.child({ registry: name });
  if (!registry.webhook) logger.warn('events are stored, not delivered: no webhook is configured');
  const client = createRpcClient(rpcUrl, network, 'bulk');
  const identity = { chainKey: network.chainKey, chainId: network.chainId, registryAddress };
  const targetOf: FeedDeliveryOptions['targetOf'] = (channel) =>
    channel.isDefault ? registry.webhook : parts.targetOf(channel);
  const delivery = createFeedDelivery({
    database,
    clock,
    logger,
    slots,
    targetOf,
    restorePurged: (feed, blocks, signal) =>
      restorePurged(
        { client, registryAddress: address, identity, startBlock: registry.startBlock, database, clock },
        feed,
        { ...blocks, signal },
      ),
    onAttempt: (outcome) => observer.attempted(name, outcome),
  });
  let opened: string | undefined;
  const follower = followRegistry({
    client,
    registryAddress: address,
    identity,
    startBlock: registry.startBlock,
    confirmations: registry.confirmations,
    finalityDepth: config.finalityDepth,
    pauses: registry.pauses,
    progressEveryMs: parts.progressEveryMs ?? PROGRESS_EVERY_MS,
    database,
    clock,
    logger,
    mask: secretMasker(config.secrets),
    checkChain: createChainCheck(client, rpcUrl, network),
    async onOpened(feed) {
      opened = feed;
      await delivery.start(feed);
    },
    onHeld: () => delivery.hold(),
    onDue(events, channels) {
      if (events > 0) observer.recorded(name, events);
      delivery.wake(channels);
    },
  });
  return {
    network: network.name,
    chainId: network.chainId,
    registry: registryAddress,
    status: follower.status,
    get opened() {
      return opened;
    },
    targetOf,
    refresh: () => delivery.refresh(),
    readAgain: follower.readAgain,
    async stop() {
      await Promise.all([follower.stop(), delivery.stop()]);
      client.destroy();
    },
  };
}
