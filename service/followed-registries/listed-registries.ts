import type { Kysely } from 'kysely';
import { ConfigurationError } from '../base/errors';
import { registryName, type RegistryName } from '../base/registry-name';
import type { Following } from '../config/followed-registries';
import type { Schema } from '../database/schema';
import { findFeeds, nextBlocksOf, registryOfFeed } from '../outbox/find-feeds';
import { undeliveredOf } from '../outbox/outbox-figures';
import type { FeedState, FeedStatus } from '../watcher/feed-status';
import { followedRegistryOf } from './followed-registry';
import { readRegistries, type RegistryKey, type StoredRegistry } from './stored-registries';

/** A followed registry, as the API and the commands show it. */
export interface ListedRegistry extends RegistryKey {
  network: string;
  /** `settings`: of service.config.json or TOKEN_REGISTRY_ADDRESS. `api`: added while the service ran. */
  origin: 'settings' | 'api';
  /** Undefined: the registry's `genesis()`. */
  startBlock: number | undefined;
  /** Undefined if the present settings cannot follow it. */
  confirmations: number | undefined;
  /** Undelivered events. */
  undelivered: number;
  /** The position and the state of its feed. Only the process that follows the registry knows the state. */
  feed: Pick<FeedStatus, 'nextBlock' | 'headBlock' | 'code' | 'reason'> & { state: FeedState | undefined };
}

/** A followed registry before its figures are read. */
export type Entry = Omit<ListedRegistry, 'undelivered' | 'feed'>;

/** The status of a registry, by its name; undefined if this process does not follow it. */
export type StatusOf = (name: RegistryName) => Readonly<FeedStatus> | undefined;

/** The registries of the settings, and those of the database that the settings do not name. */
export async function readEntries(db: Kysely<Schema>, settings: Following): Promise<Entry[]> {
  const ofSettings = entriesOf(settings);
  const names = ofSettings.map(({ chainId, address }) => registryName(chainId, address));
  const stored = (await readRegistries(db)).filter(
    (one) => !names.includes(registryName(one.chainId, one.address)),
  );
  return [...ofSettings, ...stored.map((one) => entryOf(one, settings))];
}

function entriesOf({ registries }: Following): Entry[] {
  return registries.map(({ network, address, startBlock, confirmations }) => ({
    network: network.name,
    chainId: network.chainId,
    address: address.toLowerCase(),
    origin: 'settings',
    startBlock,
    confirmations,
  }));
}

function entryOf(stored: StoredRegistry, settings: Following): Entry {
  const { network, chainId, address, startBlock } = stored;
  return {
    network,
    chainId,
    address,
    origin: 'api',
    startBlock,
    confirmations: confirmationsOf(stored, settings),
  };
}

function confirmationsOf(stored: StoredRegistry, settings: Following): number | undefined {
  try {
    return followedRegistryOf(stored, settings).confirmations;
  } catch (error) {
    if (error instanceof ConfigurationError) return stored.confirmations;
    throw error;
  }
}

/** Adds the figures of the registries' feeds. */
export async function withFigures(
  entries: readonly Entry[],
  db: Kysely<Schema>,
  statusOf: StatusOf,
): Promise<ListedRegistry[]> {
  const names = entries.map(({ chainId, address }) => registryName(chainId, address));
  const feeds = (await findFeeds(db)).filter((feed) => names.includes(registryOfFeed(feed)));
  const waiting = (await undeliveredOf(db, feeds)).map(
    (one) => [registryOfFeed(one.feed), one.undelivered] as const,
  );
  const undelivered = new Map(waiting);
  const next = (await nextBlocksOf(db, feeds)).map(
    (one) => [registryOfFeed(one.feed), one.nextBlock] as const,
  );
  const nextBlocks = new Map(next);
  return entries.map((entry) => {
    const name = registryName(entry.chainId, entry.address);
    const { state, headBlock, nextBlock = nextBlocks.get(name), code, reason } = statusOf(name) ?? {};
    return {
      ...entry,
      undelivered: undelivered.get(name) ?? 0,
      feed: { state, nextBlock, headBlock, code, reason },
    };
  });
}
