import { getAddress } from 'ethers';
import { sql, type Kysely } from 'kysely';
import { ConfigurationError } from '../base/errors';
import { registryName, type RegistryName } from '../base/registry-name';
import { type Confirmations, findNetwork, knownNetworks } from '../chain/networks';
import type { FollowedRegistry, Following } from '../config/followed-registries';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { noteChange, REGISTRIES } from '../outbox/changes';
import { findFeeds } from '../outbox/feeds';
import { outboxFiguresOf } from '../outbox/outbox-figures';

/** Chain id and lower-case address of a registry. */
export interface RegistryKey {
  chainId: number;
  address: string;
}

/** A registry that is followed without a setting. */
export interface StoredRegistry extends RegistryKey {
  /** The network's name. */
  network: string;
  /** Undefined: the registry's `genesis()`. */
  startBlock: number | undefined;
  /** Undefined: CONFIRMATIONS, or the network's. */
  confirmations: Confirmations | undefined;
  /** Time of the addition, in epoch milliseconds. It shows that a registry was added again. */
  addedAt: number;
}

/** The registries that are followed without a setting, oldest first. */
export async function readRegistries(db: Kysely<Schema>): Promise<StoredRegistry[]> {
  const rows = await db
    .selectFrom('registries')
    .selectAll()
    .where('removed_at', 'is', null)
    .orderBy('added_at')
    .orderBy('address')
    .execute();
  return rows.map((row) => ({
    chainId: row.chain_id,
    address: row.address,
    network: row.network,
    startBlock: row.start_block ?? undefined,
    confirmations: row.finality_tag ?? row.confirmations ?? undefined,
    addedAt: row.added_at,
  }));
}

/**
 * Combines a stored registry with the present settings.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN, or CONFIGURATION_INVALID if the settings have no key for its
 *   network's node.
 */
export function followedRegistryOf(
  { chainId, address, startBlock, confirmations }: Omit<StoredRegistry, 'addedAt' | 'network'>,
  { followedOf }: Pick<Following, 'followedOf'>,
): FollowedRegistry {
  const network = findNetwork(String(chainId));
  if (network !== undefined)
    return followedOf({ network, address: getAddress(address), startBlock, confirmations });
  const remedy = `Known: ${knownNetworks()}.`;
  const message = `Chain ${chainId} is not a network of the registry's contracts. ${remedy}`;
  throw new ConfigurationError('NETWORK_UNKNOWN', message, { remedy });
}

/** The names of the registries that were given up. */
export async function readGivenUp(db: Kysely<Schema>): Promise<RegistryName[]> {
  const rows = await db
    .selectFrom('registries')
    .select(['chain_id', 'address'])
    .where('removed_at', 'is not', null)
    .execute();
  return rows.map(({ chain_id, address }) => registryName(chain_id, address));
}

/** Stores a registry, unless it is followed already. */
export async function storeRegistry(
  { db }: Pick<Database, 'db'>,
  { chainId, address, network, startBlock, confirmations, addedAt }: StoredRegistry,
): Promise<void> {
  const row = {
    chain_id: chainId,
    address,
    network,
    added_at: addedAt,
    start_block: startBlock ?? null,
    confirmations: typeof confirmations === 'number' ? confirmations : null,
    finality_tag: typeof confirmations === 'string' ? confirmations : null,
  };
  await db.transaction().execute(async (transaction) => {
    await noteChange(transaction, REGISTRIES);
    await sql`delete from registries
      where chain_id = ${chainId} and address = ${address} and removed_at is not null`.execute(transaction);
    await transaction
      .insertInto('registries')
      .values(row)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  });
}

/** Whether a registry was given up, and the number of its undelivered events. */
export interface GivenUp {
  isGivenUp: boolean;
  undelivered: number;
}

/**
 * Gives a registry up: no process reads or delivers its events. Its events, its queues and its cursor stay,
 * so that nothing is lost if it is added again.
 *
 * @param isForced also if undelivered events wait.
 */
export async function giveUpRegistry(
  { db }: Pick<Database, 'db'>,
  { chainId, address, network }: RegistryKey & { network: string },
  { isForced, now }: { isForced: boolean; now: number },
): Promise<GivenUp> {
  return db.transaction().execute(async (transaction) => {
    await noteChange(transaction, REGISTRIES);
    const feeds = await findFeeds(transaction, registryName(chainId, address));
    const figures = await outboxFiguresOf(transaction, feeds);
    const undelivered = figures.reduce((sum, { waiting }) => sum + waiting, 0);
    if (undelivered > 0 && !isForced) return { isGivenUp: false, undelivered };
    await sql`insert into registries (chain_id, address, network, added_at, removed_at)
      values (${chainId}, ${address}, ${network}, ${now}, ${now})
      on conflict (chain_id, address) do update set removed_at = excluded.removed_at`.execute(transaction);
    return { isGivenUp: true, undelivered };
  });
}
