import type { Kysely } from 'kysely';
import type { Time } from '../base/time';
import {
  ChainError,
  codeOf,
  ConfigurationError,
  messageOf,
  RequestError,
  ServiceError,
} from '../base/errors';
import { printableUrl } from '../base/mask-secrets';
import { registryName, type RegistryName } from '../base/registry-name';
import { untilAborted, within } from '../base/waiting';
import { createFinalBlockReading } from '../chain/finality';
import { type Confirmations, findNetwork } from '../chain/networks';
import { headNumberOf } from '../chain/read-chain';
import { connectNodes, type ConnectedNodes } from '../chain/connect-nodes';
import type { FollowedRegistry, Following } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { findFeeds, registryOfFeed } from '../outbox/feeds';
import { outboxFiguresOf } from '../outbox/outbox-figures';
import { createRegistryFinder } from '../registry/registry-contracts';
import type { FeedState, FeedStatus } from '../watcher/feed-status';
import type { RequestedRegistry } from './parse-registry';
import {
  followedRegistryOf,
  giveUpRegistry,
  readGivenUp,
  readRegistries,
  storeRegistry,
  type RegistryKey,
  type StoredRegistry,
} from './stored-registries';

/** A followed registry, as the API and the commands show it. */
export interface ListedRegistry extends RegistryKey {
  network: string;
  /** `settings`: of service.config.json or TOKEN_REGISTRY_ADDRESS. `api`: added while the service ran. */
  origin: 'settings' | 'api';
  /** Undefined: the registry's `genesis()`. */
  startBlock: number | undefined;
  /** Undefined if the present settings cannot follow it. */
  confirmations: Confirmations | undefined;
  /** Undelivered events. */
  undelivered: number;
  /** The position and the state of its feed. Only the process that follows the registry knows the state. */
  feed: Pick<FeedStatus, 'nextBlock' | 'headBlock' | 'code' | 'reason'> & { state: FeedState | undefined };
}

/** A followed registry before its figures are read. */
type Entry = Omit<ListedRegistry, 'undelivered' | 'feed'>;

/** Lists, adds and gives up followed registries. */
export type Registries = ReturnType<typeof createRegistries>;

/** The parts of `createRegistries`. */
interface RegistriesParts {
  database: Database;
  settings: Following;
  time: Time;
  /** The status of a registry. Undefined if this process does not follow it. */
  statusOf: (name: RegistryName) => Readonly<FeedStatus> | undefined;
  /** Called after a change. */
  onChange: () => Promise<void>;
}

/** The registries of the settings and of the database. */
export function createRegistries(parts: RegistriesParts) {
  const { database, settings, time, onChange } = parts;
  const { db } = database;

  async function find(name: RegistryName): Promise<Entry | undefined> {
    return (await readEntries(db, settings)).find((one) => nameOf(one) === name);
  }

  return {
    list: async () => withFigures(await readEntries(db, settings), parts),
    /**
     * Follows a registry, after a check against its chain.
     *
     * @returns whether it was not followed before.
     * @throws RequestError REGISTRY_FOLLOWED if it is followed already in another way,
     *   NETWORK_NOT_CONFIGURED; the errors of `checkRegistry`.
     */
    async add(requested: RequestedRegistry): Promise<{ registry: ListedRegistry; isNew: boolean }> {
      const { network, startBlock, confirmations } = requested;
      const key = { chainId: network.chainId, address: requested.address.toLowerCase() };
      const name = nameOf(key);
      const before = await find(name);
      if (before !== undefined) expectSame(before, requested);
      else {
        await checkRegistry(time, followable({ ...key, startBlock, confirmations }, settings));
        const addedAt = time.now();
        await storeRegistry(database, { ...key, network: network.name, startBlock, confirmations, addedAt });
        await onChange();
      }
      const entry = await find(name);
      const [registry] = await withFigures(entry ? [entry] : [], parts);
      if (registry === undefined) throw unknown(name);
      return { registry, isNew: before === undefined };
    },
    /**
     * Gives a registry up: one that was added, or an earlier one of the settings.
     *
     * @param isForced also if undelivered events wait.
     * @throws RequestError REGISTRY_IN_SETTINGS, REGISTRY_UNKNOWN.
     */
    async giveUp(key: RegistryKey, isForced: boolean) {
      const name = nameOf(key);
      const before = await find(name);
      if (before?.origin === 'settings') throw ofSettings(name);
      if (before === undefined) {
        const feeds = await findFeeds(db, name);
        if (feeds.length === 0 || (await readGivenUp(db)).includes(name)) throw unknown(name);
        if (await database.isRightTaken(name)) throw ofSettings(name, 'of another service ');
      }
      const { chainId } = key;
      const network = before?.network ?? findNetwork(String(chainId))?.name ?? String(chainId);
      const result = await giveUpRegistry(database, { ...key, network }, { isForced, now: time.now() });
      if (result.isGivenUp) await onChange();
      return result;
    },
  };
}

function nameOf({ chainId, address }: RegistryKey): RegistryName {
  return registryName(chainId, address);
}

/** The registries of the settings, and those of the database that the settings do not name. */
async function readEntries(db: Kysely<Schema>, settings: Following): Promise<Entry[]> {
  const ofSettings = settings.registries.map(({ network, address, startBlock, confirmations }): Entry => {
    const key = { chainId: network.chainId, address: address.toLowerCase() };
    return { ...key, network: network.name, origin: 'settings', startBlock, confirmations };
  });
  const names = ofSettings.map(nameOf);
  const stored = (await readRegistries(db)).filter((one) => !names.includes(nameOf(one)));
  return [
    ...ofSettings,
    ...stored.map((one): Entry => {
      const { network, chainId, address, startBlock } = one;
      const confirmations = confirmationsOf(one, settings);
      return { network, chainId, address, origin: 'api', startBlock, confirmations };
    }),
  ];
}

function confirmationsOf(stored: StoredRegistry, settings: Following): Confirmations | undefined {
  try {
    return followedRegistryOf(stored, settings).confirmations;
  } catch (error) {
    if (error instanceof ConfigurationError) return stored.confirmations;
    throw error;
  }
}

/** Adds the figures of the registries' feeds. */
async function withFigures(
  entries: readonly Entry[],
  { database: { db }, statusOf }: RegistriesParts,
): Promise<ListedRegistry[]> {
  const names = entries.map(nameOf);
  const feeds = (await findFeeds(db)).filter((feed) => names.includes(registryOfFeed(feed)));
  const figures = await outboxFiguresOf(db, feeds);
  return entries.map((entry) => {
    const name = nameOf(entry);
    const own = figures.find(({ registry }) => registry === name);
    const { state, headBlock, nextBlock, code, reason } = statusOf(name) ?? {};
    return {
      ...entry,
      undelivered: own?.waiting ?? 0,
      feed: { state, nextBlock: nextBlock ?? own?.nextBlock, headBlock, code, reason },
    };
  });
}

/** @throws RequestError NETWORK_NOT_CONFIGURED if the settings have no key for the network's node. */
function followable(
  registry: Parameters<typeof followedRegistryOf>[0],
  settings: Following,
): FollowedRegistry {
  try {
    return followedRegistryOf(registry, settings);
  } catch (cause) {
    if (!(cause instanceof ConfigurationError)) throw cause;
    const message = `The service has no node of this network: ${cause.message}`;
    throw new RequestError('NETWORK_NOT_CONFIGURED', message, { cause });
  }
}

/** A member that the request leaves out is taken from the followed registry. */
function expectSame(before: Entry, requested: RequestedRegistry): void {
  const differing = (['startBlock', 'confirmations'] as const).filter(
    (member) => requested[member] !== undefined && requested[member] !== before[member],
  );
  if (differing.length === 0) return;
  const remedy =
    before.origin === 'settings' ? 'Change the settings.' : 'Remove the registry first, then add it again.';
  const message = `${nameOf(before)} is followed already, with another ${differing.join(' and ')}. ${remedy}`;
  throw new RequestError('REGISTRY_FOLLOWED', message, { remedy });
}

function ofSettings(name: RegistryName, whose = ''): RequestError {
  const remedy =
    'Take it out of service.config.json, or change TOKEN_REGISTRY_ADDRESS, and restart the service.';
  const message = `The settings ${whose}follow ${name}. ${remedy}`;
  return new RequestError('REGISTRY_IN_SETTINGS', message, { remedy });
}

function unknown(name: RegistryName): RequestError {
  const list = 'GET /registries and `npx tdoc registries list` list those that are.';
  return new RequestError('REGISTRY_UNKNOWN', `${name} is not followed. ${list}`);
}

const WITHIN_MS = 10_000;

/**
 * Checks that the node of the registry's network answers and is of that chain, that the address is a token
 * registry of version 5, and that the chain has its start block and knows the tag of its confirmations.
 *
 * @throws RequestError CHAIN_ID_MISMATCH, REGISTRY_MISSING, REGISTRY_INVALID, ESCROWS_UNSUPPORTED,
 *   FINALITY_UNSUPPORTED; ChainError RPC_UNREACHABLE, RPC_KEY_REFUSED, FINALITY_MISSING (all retryable) if
 *   the node cannot answer now.
 */
async function checkRegistry(time: Time, registry: FollowedRegistry): Promise<void> {
  const { network, rpcUrls } = registry;
  const nodes = connectNodes(rpcUrls, network, time);
  try {
    await within(time, WITHIN_MS, (late) => untilAborted(late, check(nodes, registry)));
  } catch (cause) {
    // A provider's node may lag behind the one that named the newest block.
    const isOfNode = ['BLOCK_MISSING', 'ANSWER_MALFORMED'].includes(codeOf(cause) ?? '');
    if (cause instanceof ServiceError && !isOfNode) throw cause;
    const message = `The node at ${printed(rpcUrls)} does not answer as it should. Try again later.`;
    throw new ChainError('RPC_UNREACHABLE', message, { cause, retryable: true });
  } finally {
    nodes.client.close();
  }
}

function printed(urls: readonly string[]): string {
  return urls.map(printableUrl).join(', ');
}

async function check({ client, checkChain }: ConnectedNodes, registry: FollowedRegistry): Promise<void> {
  const { network, rpcUrls, address, startBlock, confirmations } = registry;
  await checkChain().catch((cause: unknown) => {
    if (!(cause instanceof ConfigurationError)) throw cause;
    const { name, chainId } = network;
    const message = `The node at ${printed(rpcUrls)} is not of ${name} (chain id ${chainId}).`;
    const remedy = 'Correct the network, or RPC_URL of the service.';
    throw new RequestError(cause.code, `${message} ${remedy}`, { cause });
  });
  await createRegistryFinder(client, address)().catch((cause: unknown) => {
    const code = codeOf(cause) ?? '';
    const problem = {
      REGISTRY_MISSING: `There is no contract at ${address} on ${network.name}.`,
      REGISTRY_INVALID: `The contract at ${address} on ${network.name} is not a token registry of version 5.`,
      ESCROWS_UNSUPPORTED: messageOf(cause),
    }[code];
    if (problem === undefined) throw cause;
    throw new RequestError(code, `${problem} Correct the address or the network.`, { cause });
  });
  const head = await headNumberOf(client);
  await createFinalBlockReading(
    client,
    network,
    confirmations,
  )(head).catch((cause: unknown) => {
    throw cause instanceof ConfigurationError
      ? new RequestError(cause.code, cause.message, { cause })
      : cause;
  });
  if (startBlock === undefined || startBlock <= head) return;
  const message = `/startBlock is ${startBlock}, but the newest block of ${network.name} is ${head}.`;
  const remedy = 'Give a block that exists, or leave it out for the first block of the registry.';
  throw new RequestError('REGISTRY_INVALID', `${message} ${remedy}`);
}
