import { BusyError } from '../base/errors';
import type { Clock } from '../base/clock';
import { printableUrl } from '../base/mask-secrets';
import { registryName, type RegistryName } from '../base/registry-name';
import { createSemaphore } from '../base/semaphore';
import { untilAborted } from '../base/waiting';
import { networkOfChain } from '../chain/networks';
import type { Config } from '../config/config';
import type { Database } from '../database/database';
import type { JournalScope } from '../journal/issuance';
import { listEvents } from '../outbox/deliveries';
import { readTokenState } from '../registry/read-token-state';
import { tokenIdHexOf } from '../registry/token-id-forms';
import { reachRegistry, type NetworkNode } from '../registry/registry-contracts';
import { readTokenHistory } from '../token/read-token-history';
import type { FollowedFeed } from '../watcher/feed-status';
import type { CheckingPool } from './checking-pool';
import type { Answers } from './console';
import { deliveryList, eventDetails, type TargetOf } from './delivery-views';
import { issuingProgress } from './issuing-progress';
import { askedToken } from './token-question';
import { tokenView } from './token-view';
import type { IssuingProgress } from './views';

/** The parts of the service that the answers come from. */
export interface AnswersParts {
  config: Pick<Config, 'network' | 'rpcUrl' | 'registries' | 'followedOf' | 'tokenRegistryAddress'>;
  database: Database;
  feedOf(this: void, registry: RegistryName): FollowedFeed | undefined;
  targetOf: TargetOf;
  /** The scope of the documents that are issued; undefined if none are. */
  scope: JournalScope | undefined;
  checking: CheckingPool;
  clock: Clock;
}

/** Histories that are read at once: each may take a node many requests. */
const READING = { permits: 4, waiting: 20, waitMs: 30_000 };

export function createAnswers(parts: AnswersParts): Answers {
  const { config, database, feedOf, targetOf, scope, checking, clock } = parts;
  const { db } = database;
  const reading = createSemaphore(READING);
  const own = { chainId: config.network.chainId, registry: config.tokenRegistryAddress };

  async function inTurn<T>(left: AbortSignal, read: () => Promise<T>): Promise<T> {
    const release = await reading.acquire(left);
    if (typeof release === 'string') {
      left.throwIfAborted();
      throw new BusyError('Too many tokens at once: try it again later.', READING.waitMs);
    }
    return read().finally(release);
  }

  async function progress(tokenId: string): Promise<IssuingProgress | undefined> {
    if (scope === undefined) return undefined;
    const feed = feedOf(registryName(scope.chainId, scope.registryAddress));
    return issuingProgress(db, scope, tokenId, feed?.status.headBlock);
  }

  return {
    progress,
    validate: checking.validate,
    async token(question, left) {
      const asked = askedToken(question, own);
      const { location } = asked;
      const { chainId, registry, tokenId } = location;
      const node = nodeOf(config, location);
      const history = await inTurn(left, () =>
        reachRegistry(node, registry, (reached) =>
          // Reading a long history ends when the caller leaves: the clients are then closed.
          untilAborted(
            left,
            readTokenHistory(reached.client, reached.registry, tokenId, { bulkClient: reached.bulkClient }),
          ),
        ),
      );
      const name = registryName(chainId, registry);
      const { events: newestFirst } = await listEvents(db, { registry: name, tokenId: tokenId.toString() });
      const events = newestFirst
        .filter(({ deliveries }) => !deliveries.some(({ state }) => state === 'orphaned'))
        .reverse();
      const isOwn = chainId === own.chainId && registry.toLowerCase() === own.registry?.toLowerCase();
      const issuing = isOwn ? await progress(tokenIdHexOf(tokenId)) : undefined;
      return tokenView({ asked, network: node.network, history, events, issuing });
    },
    deliveries: (wanted) => deliveryList(db, wanted),
    event: (eventId) => eventDetails(db, targetOf, eventId, clock.now()),
    async verify(bytes, left) {
      const nodes: string[] = [];
      const view = await checking.verify(bytes, left, async (location) => {
        const node = nodeOf(config, location);
        nodes.push(printableUrl(node.url));
        return reachRegistry(node, location.registry, ({ client, registry }) =>
          readTokenState(client, registry.contracts, location.tokenId),
        );
      });
      return { ...view, lookedUp: [...new Set([...view.lookedUp, ...nodes])] };
    },
  };
}

/**
 * The node at which a registry is read: that of the registry, if it is followed, or another of its chain.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN, or CONFIGURATION_INVALID without the key of the network's node.
 */
function nodeOf(
  config: Pick<Config, 'network' | 'rpcUrl' | 'registries' | 'followedOf'>,
  { chainId, registry: address }: { chainId: number; registry: string },
): NetworkNode {
  const network = networkOfChain(chainId);
  const followed = config.registries.filter((one) => one.network.chainId === chainId);
  const same = followed.find((one) => one.address.toLowerCase() === address.toLowerCase());
  const [other = same] = followed;
  if (other !== undefined) return { network, url: (same ?? other).rpcUrl };
  if (config.network.chainId === chainId) return { network, url: config.rpcUrl };
  return { network, url: config.followedOf({ network, address }).rpcUrl };
}
