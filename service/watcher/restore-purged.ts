import { untilAborted } from '../base/waiting';
import { BlockSpan, existingBlock } from '../chain/read-chain';
import { restoreEvents } from '../outbox/refill';
import { createRegistryFinder } from '../registry/registry-contracts';
import type { FeedFollowing } from './follow-registry';
import { KnownEscrows } from './known-escrows';
import { expectLogs } from './pruned-logs';
import { readRange } from './read-range';

/** Blocks per request at first. */
const MOST_BLOCKS = 2_000;

/** The registry whose events are restored. Blocks before `startBlock` were never read. */
type PurgedRegistry = Pick<
  FeedFollowing,
  'client' | 'registryAddress' | 'identity' | 'startBlock' | 'database' | 'time'
>;

/**
 * Reads events from the chain again that were removed because they were old, the newest first: if it ends
 * early, or the signal aborts, it goes on from there the next time.
 *
 * @throws ChainError LOGS_PRUNED if the node does not have the oldest block any more, or removed its logs.
 */
export async function restorePurged(
  { client, registryAddress, identity, startBlock, database, time }: PurgedRegistry,
  feed: number,
  { fromBlock, upTo, signal }: { fromBlock: number; upTo: number; signal: AbortSignal },
): Promise<void> {
  const finding = createRegistryFinder(client, registryAddress)();
  const registry = await untilAborted(signal, finding);
  const escrows = new KnownEscrows(registry, 0);
  const span = new BlockSpan(MOST_BLOCKS);
  const firstRead = startBlock ?? registry.genesisBlock;
  const oldest = Math.min(Math.max(fromBlock, firstRead), upTo);
  await untilAborted(signal, expectLogs(client, registryAddress, oldest, { signal }));
  for (let last = upTo; last >= oldest && !signal.aborted;) {
    const first = Math.max(last - span.blocks() + 1, oldest);
    const blocks = Promise.all([existingBlock(client, first), existingBlock(client, last)]);
    const reading = blocks.then((both) => readRange({ client, escrows }, ...both));
    const read = await untilAborted(signal, reading).catch((error: unknown) => {
      if (!signal.aborted && span.shrink()) return undefined;
      throw error;
    });
    if (read === undefined) continue;
    // Earlier blocks were never read, so the last range reaches down to block 0.
    const from = first <= firstRead ? 0 : first;
    const range = { events: read.events, fromBlock: from, toBlock: last };
    if (!(await restoreEvents(database, feed, identity, range, time.now()))) return;
    span.grow();
    last = first - 1;
  }
}
