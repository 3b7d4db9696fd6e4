import { createRpcClient, createChainCheck } from './chain/rpc-client';
import type { Clock } from './base/clock';
import { messageOf } from './base/errors';
import { pause } from './base/pause';
import type { Config } from './config/config';
import type { Database } from './database/database';
import { createFeedDelivery, type FeedDeliveryOptions } from './delivery/feed-delivery';
import type { FollowedRegistry } from './config/followed-registries';
import type { Logger } from './base/logger';
import type { ReportedFeed } from './observability/health';
import { findAllFeeds } from './outbox/find-feeds';
import { outboxFiguresOf, type OutboxFigures } from './outbox/outbox-figures';
import { purgeEvents } from './outbox/purge-events';
import { secretMasker } from './base/mask-secrets';
import { subscriptionsVersion } from './outbox/channels';
import { followRegistry } from './watcher/follow-registry';
import { restorePurged } from './watcher/restore-purged';

/** The event delivery of one registry. */
interface DeliveredFeed extends ReportedFeed {
  /** To be called when subscriptions were changed. */
  refresh(): Promise<void>;
  stop(): Promise<void>;
}

/** Receives the events that the service counts. `registry`: chain id and address. */
export interface EventDeliveryObserver {
  recorded(registry: string, events: number): void;
  attempted(registry: string, outcome: 'delivered' | 'failed' | 'dead'): void;
}

/** Event delivery, from the chain to the subscribers. */
export interface EventDelivery {
  feeds: readonly DeliveredFeed[];
  /** Figures of the outboxes, for registries whose feeds are known by now. */
  figures(): Promise<({ registry: string } & OutboxFigures)[]>;
  /**
   * Removes events of the followed registries that were recorded and last sent before a time (epoch
   * milliseconds) and are not needed any more. Resolves to their number.
   */
  purge(this: void, before: number, signal: AbortSignal): Promise<number>;
  /** Names of the feeds that are delivered. */
  openFeeds(): string[];
  /** To be called when this process changed subscriptions. Changes of others are noticed within a second. */
  refresh(this: void): void;
  stop(): Promise<void>;
}

/** Starts watcher → outbox → delivery for each registry. The registries do not wait for each other. */
export function startEventDelivery(
  config: Config,
  parts: Omit<FeedParts, 'config' | 'opened'>,
): EventDelivery {
  const { database, logger } = parts;
  if (config.registries.length === 0)
    logger.warn('no events are read: TOKEN_REGISTRY_ADDRESS is not configured');
  const opened = new Map<string, string>();
  const feeds = config.registries.map((registry) => startFeed(registry, { config, ...parts, opened }));
  const refresh = (): void => {
    for (const feed of feeds)
      feed.refresh().catch((error: unknown) => {
        logger.warn({ error }, `changed subscriptions cannot be read now: ${messageOf(error)}`);
      });
  };
  const changes = watchChanges(database, logger, refresh);
  return {
    feeds,
    openFeeds: () => [...opened.values()],
    refresh,
    figures: async () =>
      Promise.all(
        [...opened].map(async ([registry, feed]) => ({
          registry,
          ...(await outboxFiguresOf(database.db, feed)),
        })),
      ),
    async purge(before, signal) {
      let removed = 0;
      for (const { chainId, registry } of feeds)
        for (const feed of await findAllFeeds(database.db, `${chainId}:${registry}`))
          removed += await purgeEvents(database, feed, before, signal);
      return removed;
    },
    async stop() {
      await changes.stop();
      await Promise.all(feeds.map((feed) => feed.stop()));
    },
  };
}

/** Interval in which changes of subscriptions by other processes are looked for. */
const LOOK_FOR_CHANGES_MS = 1_000;

/** Calls `onChange` when the version of subscriptions is another than at the last look. */
function watchChanges({ db }: Database, logger: Logger, onChange: () => void): { stop(): Promise<void> } {
  const stop = new AbortController();
  const run = async (): Promise<void> => {
    let seen: number | undefined;
    while (!stop.signal.aborted) {
      try {
        const version = await subscriptionsVersion(db);
        if (seen !== undefined && version !== seen) onChange();
        seen = version;
      } catch (error) {
        logger.warn({ error }, `subscriptions cannot be read now: ${messageOf(error)}`);
      }
      await pause(LOOK_FOR_CHANGES_MS, stop.signal);
    }
  };
  const finished = run();
  return {
    async stop() {
      stop.abort();
      await finished;
    },
  };
}

/** The parts that all feeds share. `opened`: the name of each registry's feed, once it is known. */
interface FeedParts {
  config: Config;
  database: Database;
  clock: Clock;
  observer: EventDeliveryObserver;
  opened: Map<string, string>;
  logger: Logger;
  /** The webhook of a subscription of the API. Undefined: its events wait. */
  targetOf: FeedDeliveryOptions['targetOf'];
  /** Shorter in tests. */
  progressEveryMs?: number | undefined;
}

/** Time between two log lines about the progress of a catch-up. */
const PROGRESS_EVERY_MS = 10_000;

function startFeed(registry: FollowedRegistry, parts: FeedParts): DeliveredFeed {
  const { config, database, clock, observer, opened } = parts;
  const { network, rpcUrl, address } = registry;
  const registryAddress = address.toLowerCase();
  const name = `${network.chainId}:${registryAddress}`;
  const logger = parts.logger.child({ registry: name });
  if (!registry.webhook) logger.warn('events are stored, not delivered: no webhook is configured');
  const client = createRpcClient(rpcUrl, network, 'bulk');
  const identity = { chainKey: network.chainKey, chainId: network.chainId, registryAddress };
  const delivery = createFeedDelivery({
    database,
    clock,
    logger,
    targetOf: (channel) => (channel.isDefault ? registry.webhook : parts.targetOf(channel)),
    restorePurged: (feed, blocks) =>
      restorePurged({ client, registryAddress: address, identity, database, clock }, feed, blocks),
    onAttempt: (outcome) => observer.attempted(name, outcome),
  });
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
      opened.set(name, feed);
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
    refresh: () => delivery.refresh(),
    async stop() {
      await Promise.all([follower.stop(), delivery.stop()]);
      client.destroy();
    },
  };
}
