import { type Time, untilAborted, within } from '../base/time';
import {
  ChainError,
  ConfigurationError,
  messageOf,
  orUndefined,
  RequestError,
  ServiceError,
  type ErrorCode,
} from '../base/errors';
import { printableUrl } from '../base/mask-secrets';
import { registryName, type RegistryName } from '../base/registry-name';
import { createFinalBlockReading } from '../chain/finality';
import { type Confirmations, findNetwork } from '../chain/networks';
import { headNumberOf } from '../chain/read-chain';
import { connectNodes, type ConnectedNodes } from '../chain/connect-nodes';
import type { FollowedRegistry, Following } from '../config/followed-registries';
import type { Database } from '../database/database';
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
  type GivenUp,
  type RegistryKey,
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

/** The parts of `Registries`. */
interface RegistriesParts {
  database: Database;
  settings: Following;
  time: Time;
  /** The status of a registry. Undefined if this process does not follow it. */
  statusOf: (name: RegistryName) => Readonly<FeedStatus> | undefined;
  /** Called after a change. */
  onChange: () => Promise<void>;
}

/** Lists, adds and gives up followed registries: those of the settings and of the database. */
export class Registries {
  constructor(private readonly parts: RegistriesParts) {}

  /** The registries of the settings, and those of the database that the settings do not name. */
  async list(): Promise<ListedRegistry[]> {
    const { database, settings, statusOf } = this.parts;
    const ofSettings = settings.registries.map(({ network, address, startBlock, confirmations }) => {
      const key = { chainId: network.chainId, address: address.toLowerCase() };
      return { ...key, network: network.name, origin: 'settings' as const, startBlock, confirmations };
    });
    const known = ofSettings.map(nameOf);
    const stored = (await readRegistries(database.db)).filter((one) => !known.includes(nameOf(one)));
    const added = stored.map((one) => {
      const { network, chainId, address, startBlock } = one;
      // The settings may have no key for its node any more.
      const followed = orUndefined(() => followedRegistryOf(one, settings));
      const { confirmations } = followed ?? one;
      return { network, chainId, address, origin: 'api' as const, startBlock, confirmations };
    });
    const entries = [...ofSettings, ...added];
    const names = entries.map(nameOf);
    const feeds = (await findFeeds(database.db)).filter((feed) => names.includes(registryOfFeed(feed)));
    const figures = await outboxFiguresOf(database.db, feeds);
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

  async #find(name: RegistryName): Promise<ListedRegistry | undefined> {
    return (await this.list()).find((one) => nameOf(one) === name);
  }

  /**
   * Follows a registry, after a check against its chain.
   *
   * @returns whether it was not followed before.
   * @throws RequestError REGISTRY_FOLLOWED if it is followed already in another way, NETWORK_NOT_CONFIGURED;
   *   the errors of `checkRegistry`.
   */
  async add(requested: RequestedRegistry): Promise<{ registry: ListedRegistry; isNew: boolean }> {
    const { database, settings, time, onChange } = this.parts;
    const { network, startBlock, confirmations } = requested;
    const key = { chainId: network.chainId, address: requested.address.toLowerCase() };
    const name = nameOf(key);
    const before = await this.#find(name);
    if (before !== undefined) {
      expectSame(before, requested);
      return { registry: before, isNew: false };
    }
    await checkRegistry(time, followable({ ...key, startBlock, confirmations }, settings));
    const addedAt = time.now();
    await storeRegistry(database, { ...key, network: network.name, startBlock, confirmations, addedAt });
    await onChange();
    const registry = await this.#find(name);
    if (registry === undefined) throw unknown(name);
    return { registry, isNew: true };
  }

  /**
   * Gives a registry up: one that was added, or an earlier one of the settings.
   *
   * @param isForced also if undelivered events wait.
   * @throws RequestError REGISTRY_IN_SETTINGS, REGISTRY_UNKNOWN.
   */
  async giveUp(key: RegistryKey, isForced: boolean): Promise<GivenUp> {
    const { database, time, onChange } = this.parts;
    const name = nameOf(key);
    const before = await this.#find(name);
    if (before?.origin === 'settings') throw ofSettings(name);
    if (before === undefined) {
      const feeds = await findFeeds(database.db, name);
      if (feeds.length === 0 || (await readGivenUp(database.db)).includes(name)) throw unknown(name);
      if (await database.isRightTaken(name)) throw ofSettings(name, 'of another service ');
    }
    const { chainId } = key;
    const network = before?.network ?? findNetwork(String(chainId))?.name ?? String(chainId);
    const result = await giveUpRegistry(database, { ...key, network }, { isForced, now: time.now() });
    if (result.isGivenUp) await onChange();
    return result;
  }
}

function nameOf({ chainId, address }: RegistryKey): RegistryName {
  return registryName(chainId, address);
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
function expectSame(before: ListedRegistry, requested: RequestedRegistry): void {
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
  const { network, rpcUrls, address } = registry;
  const nodes = connectNodes(rpcUrls, network, time);
  const node = `The node at ${rpcUrls.map(printableUrl).join(', ')}`;
  try {
    await within(time, WITHIN_MS, (late) => untilAborted(late, check(nodes, registry)));
  } catch (cause) {
    const place = `${address} on ${network.name}`;
    const correct = 'Correct the address or the network.';
    const problems: Partial<Record<ErrorCode, string>> = {
      CHAIN_ID_MISMATCH:
        `${node} is not of ${network.name} (chain id ${network.chainId}). ` +
        'Correct the network, or RPC_URL of the service.',
      REGISTRY_MISSING: `There is no contract at ${place}. ${correct}`,
      REGISTRY_INVALID: `The contract at ${place} is not a token registry of version 5. ${correct}`,
      ESCROWS_UNSUPPORTED: `${messageOf(cause)} ${correct}`,
      FINALITY_UNSUPPORTED: messageOf(cause),
    };
    if (cause instanceof ServiceError) {
      const problem = cause instanceof RequestError ? undefined : problems[cause.code];
      if (problem !== undefined) throw new RequestError(cause.code, problem, { cause });
      // A provider's node may lag behind the one that named the newest block.
      if (cause.code !== 'BLOCK_MISSING' && cause.code !== 'ANSWER_MALFORMED') throw cause;
    }
    const message = `${node} does not answer as it should. Try again later.`;
    throw new ChainError('RPC_UNREACHABLE', message, { cause });
  } finally {
    nodes.client.close();
  }
}

async function check(
  { client, checkChain }: ConnectedNodes,
  { network, address, startBlock, confirmations }: FollowedRegistry,
): Promise<void> {
  await checkChain();
  await createRegistryFinder(client, address)();
  const head = await headNumberOf(client);
  await createFinalBlockReading(client, network, confirmations)(head);
  if (startBlock === undefined || startBlock <= head) return;
  const message = `/startBlock is ${startBlock}, but the newest block of ${network.name} is ${head}.`;
  const remedy = 'Give a block that exists, or leave it out for the first block of the registry.';
  throw new RequestError('REGISTRY_INVALID', `${message} ${remedy}`);
}
