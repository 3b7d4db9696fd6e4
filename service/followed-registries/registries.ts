import type { Clock } from '../base/clock';
import { ConfigurationError, RequestError } from '../base/errors';
import { registryName, type RegistryName } from '../base/registry-name';
import { findNetwork } from '../chain/networks';
import type { Following } from '../config/followed-registries';
import type { Database } from '../database/database';
import { findFeeds } from '../outbox/find-feeds';
import { checkRegistry } from './check-registry';
import { followedRegistryOf } from './followed-registry';
import {
  readEntries,
  withFigures,
  type Entry,
  type ListedRegistry,
  type StatusOf,
} from './listed-registries';
import type { RequestedRegistry } from './parse-registry';
import { giveUpRegistry, readGivenUp, storeRegistry, type RegistryKey } from './stored-registries';

/** Lists, adds and gives up followed registries. */
export interface Registries {
  list(): Promise<ListedRegistry[]>;
  /**
   * Follows a registry, after a check against its chain.
   *
   * @returns whether it was not followed before.
   * @throws RequestError REGISTRY_FOLLOWED if it is followed already in another way, NETWORK_NOT_CONFIGURED;
   *   the errors of `checkRegistry`.
   */
  add(requested: RequestedRegistry): Promise<{ registry: ListedRegistry; isNew: boolean }>;
  /**
   * Gives a registry up: one that was added, or an earlier one of the settings.
   *
   * @param isForced also if undelivered events wait.
   * @throws RequestError REGISTRY_IN_SETTINGS, REGISTRY_UNKNOWN.
   */
  giveUp(key: RegistryKey, isForced: boolean): Promise<{ isGivenUp: boolean; undelivered: number }>;
}

/** The parts of `createRegistries`. */
export interface RegistriesParts {
  database: Database;
  settings: Following;
  clock: Clock;
  statusOf: StatusOf;
  /** Called after a change. */
  onChange: () => Promise<void>;
}

/** The registries of the settings and of the database. */
export function createRegistries(parts: RegistriesParts): Registries {
  const { database, settings, clock, statusOf, onChange } = parts;
  const { db } = database;

  const entries = (): Promise<Entry[]> => readEntries(db, settings);

  return {
    list: async () => withFigures(await entries(), db, statusOf),
    async add(requested) {
      const { network, startBlock, confirmations } = requested;
      const key = { chainId: network.chainId, address: requested.address.toLowerCase() };
      const name = registryName(key.chainId, key.address);
      const before = (await entries()).find(isNamed(name));
      if (before !== undefined) expectSame(before, requested);
      else {
        await checkRegistry(followable({ ...key, startBlock, confirmations }, settings));
        const addedAt = clock.now();
        await storeRegistry(database, { ...key, network: network.name, startBlock, confirmations, addedAt });
        await onChange();
      }
      const [registry] = await withFigures((await entries()).filter(isNamed(name)), db, statusOf);
      if (registry === undefined) throw unknown(name);
      return { registry, isNew: before === undefined };
    },
    async giveUp(key, isForced) {
      const name = registryName(key.chainId, key.address);
      const before = (await entries()).find(isNamed(name));
      if (before?.origin === 'settings') throw ofSettings(name);
      if (before === undefined) {
        const feeds = await findFeeds(db, name);
        if (feeds.length === 0 || (await readGivenUp(db)).includes(name)) throw unknown(name);
        for (const feed of feeds)
          if (await database.isRightTaken(feed)) throw ofSettings(name, 'of another service ');
      }
      const network = before?.network ?? networkName(key.chainId);
      const result = await giveUpRegistry(database, { ...key, network }, { isForced, now: clock.now() });
      if (result.isGivenUp) await onChange();
      return result;
    },
  };
}

function isNamed(name: RegistryName): (one: Entry) => boolean {
  return ({ chainId, address }) => registryName(chainId, address) === name;
}

/** @throws RequestError NETWORK_NOT_CONFIGURED if the settings have no key for the network's node. */
function followable(
  registry: Parameters<typeof followedRegistryOf>[0],
  settings: Following,
): ReturnType<typeof followedRegistryOf> {
  try {
    return followedRegistryOf(registry, settings);
  } catch (cause) {
    if (!(cause instanceof ConfigurationError)) throw cause;
    const message = `The service has no node of this network: ${cause.message}`;
    throw new RequestError('NETWORK_NOT_CONFIGURED', message, { cause });
  }
}

/** A member that the request leaves out is taken from the followed registry. */
function expectSame(before: Entry, { startBlock, confirmations }: RequestedRegistry): void {
  const differing = [
    startBlock !== undefined && startBlock !== before.startBlock && 'startBlock',
    confirmations !== undefined && confirmations !== before.confirmations && 'confirmations',
  ].filter((name) => name !== false);
  if (differing.length === 0) return;
  const remedy =
    before.origin === 'settings' ? 'Change the settings.' : 'Remove the registry first, then add it again.';
  const name = registryName(before.chainId, before.address);
  const message = `${name} is followed already, with another ${differing.join(' and ')}. ${remedy}`;
  throw new RequestError('REGISTRY_FOLLOWED', message, { remedy });
}

function ofSettings(name: RegistryName, whose = ''): RequestError {
  const remedy =
    'Take it out of service.config.json, or change TOKEN_REGISTRY_ADDRESS, and restart the service.';
  return new RequestError('REGISTRY_IN_SETTINGS', `The settings ${whose}follow ${name}. ${remedy}`, {
    remedy,
  });
}

function unknown(name: RegistryName): RequestError {
  const message =
    `${name} is not followed. ` + 'GET /registries and `npx tdoc registries list` list those that are.';
  return new RequestError('REGISTRY_UNKNOWN', message);
}

function networkName(chainId: number): string {
  return findNetwork(String(chainId))?.name ?? String(chainId);
}
