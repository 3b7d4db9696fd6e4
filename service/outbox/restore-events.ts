import type { Database } from '../database/database';
import type { RegistryEvent } from '../registry/registry-event';
import { toCloudEvent, tokenKeyOf, type RegistryIdentity } from '../events/cloud-event';
import { insertEvents } from './insert-events';
import { keyIn, keysOfTokens } from './tokens';

/**
 * Stores events again that were removed because they were old, without enqueueing them. Events that are still
 * stored are left as they are.
 *
 * @param range its blocks are complete afterwards: the last removed event is then before `fromBlock`.
 * @returns false, and changes nothing, if the last removed event is not in the range: meanwhile others were
 *   removed or restored.
 */
export async function restoreEvents(
  { db }: Database,
  feed: number,
  registry: RegistryIdentity,
  range: { events: readonly RegistryEvent[]; fromBlock: number; toBlock: number },
  now: number,
): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const { numUpdatedRows } = await transaction
      .updateTable('feeds')
      .set({ purged_up_to: range.fromBlock > 0 ? range.fromBlock - 1 : null })
      .where('id', '=', feed)
      .where('purged_up_to', '>=', range.fromBlock)
      .where('purged_up_to', '<=', range.toBlock)
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return false;
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
      token: keyIn(tokens, tokenKeyOf(event)),
      at: event,
      // They are as old as others of their blocks: the removal of old events ends at the first that are not.
      recordedAt: Math.min(now, event.blockTimestamp * 1_000),
    }));
    await insertEvents(transaction, feed, events, now);
    return true;
  });
}
