import type { Database } from '../database/database';
import type { RegistryEvent } from '../registry/registry-event';
import { toCloudEvent, tokenKeyOf, type RegistryIdentity } from './cloud-event';
import { insertEvents } from './insert-events';
import { keysOfTokens } from './tokens';

/**
 * Stores events again that were removed because they were old, without enqueueing them. Events that are still
 * stored are left as they are.
 *
 * @param range its blocks are complete afterwards: the last removed event is then before `fromBlock`.
 */
export async function restoreEvents(
  { db }: Database,
  feed: number,
  registry: RegistryIdentity,
  range: { events: readonly RegistryEvent[]; fromBlock: number; toBlock: number },
  now: number,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await transaction
      .updateTable('feeds')
      .set({ purged_up_to: range.fromBlock > 0 ? range.fromBlock - 1 : null })
      .where('id', '=', feed)
      // Another process may have restored more meanwhile.
      .where('purged_up_to', '>=', range.fromBlock)
      .execute();
    const stored = await transaction
      .selectFrom('events')
      .select(['block_number', 'log_index'])
      .where('feed', '=', feed)
      .where('block_number', '>=', range.fromBlock)
      .where('block_number', '<=', range.toBlock)
      // Orphans and retractions have the positions of blocks that were removed.
      .where('audience', '=', 'all')
      .where('orphaned_at', 'is', null)
      .execute();
    const known = new Set(stored.map(({ block_number, log_index }) => `${block_number}:${log_index}`));
    const missing = range.events.filter(
      ({ blockNumber, blockLogIndex }) => !known.has(`${blockNumber}:${blockLogIndex}`),
    );
    const tokens = await keysOfTokens(transaction, feed, missing.map(tokenKeyOf));
    const events = missing.map((event) => ({
      cloudEvent: toCloudEvent(event, registry),
      token: tokens.get(tokenKeyOf(event)) ?? 0,
      at: event,
    }));
    await insertEvents(transaction, feed, events, now);
  });
}
