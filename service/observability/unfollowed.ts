import { findNetwork } from '../chain/networks';
import type { Database } from '../database/database';
import { countUnfinished } from '../journal/read-issuances';
import { mintingRightOf, scopeName, type JournalScope } from '../journal/issuance';
import { registryName, type RegistryName } from '../base/registry-name';
import { findFeeds, registryOfFeed } from '../outbox/feeds';
import { outboxFiguresOf } from '../outbox/outbox-figures';
import { readGivenUp } from '../followed-registries/stored-registries';

/** Work in the database that no service does. `registry`: chain id and address, `80002:0x…`. */
export interface Unfollowed {
  deliveries: { registry: RegistryName; undelivered: number; nextBlock: number }[];
  issuances: { registry: RegistryName; issuer: string; unfinished: number }[];
}

/** The registries and the journal that this process follows. */
export interface Followed {
  /** Chain id of NET. */
  chainId: number;
  /** Chain id and address, lower case. */
  registries: readonly RegistryName[];
  /** The scope of the issuer whose documents are issued; undefined if none are. */
  scope: JournalScope | undefined;
}

/**
 * Finds the work that no service does, because its registry is not followed (any more): events that wait to
 * be delivered, or will be read from `nextBlock` on, and documents that are being issued. The events of a
 * registry that was given up are left out. Left out too is work that another process with the same database
 * is doing, and work on local networks other than NET, which are for trials.
 */
export async function unfollowedOf(
  { db, isRightTaken }: Pick<Database, 'db' | 'isRightTaken'>,
  { chainId: ownChainId, registries, scope: own }: Followed,
): Promise<Unfollowed> {
  const isTrial = (chainId: number): boolean =>
    chainId !== ownChainId && findNetwork(String(chainId))?.local === true;
  const givenUp = await readGivenUp(db);
  const feeds = (await findFeeds(db)).filter((feed) => {
    const registry = registryOfFeed(feed);
    return ![...registries, ...givenUp].includes(registry) && !isTrial(Number(registry.split(':')[0]));
  });
  const deliveries: Unfollowed['deliveries'] = [];
  for (const { registry, nextBlock, waiting } of await outboxFiguresOf(db, feeds))
    if (!(await isRightTaken(registry))) deliveries.push({ registry, undelivered: waiting, nextBlock });
  const issuances: Unfollowed['issuances'] = [];
  for (const { scope, unfinished } of await countUnfinished(db)) {
    const isOwn = own !== undefined && scopeName(own) === scopeName(scope);
    if (isOwn || isTrial(scope.chainId) || (await isRightTaken(mintingRightOf(scope)))) continue;
    const { chainId, registryAddress, issuer } = scope;
    issuances.push({ registry: registryName(chainId, registryAddress), issuer, unfinished });
  }
  return { deliveries, issuances };
}
