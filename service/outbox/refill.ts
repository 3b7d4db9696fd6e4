import { sql } from 'kysely';
import type { Database } from '../database/database';
import { toCloudEvent, tokenKeyOf, type CloudEvent, type RegistryIdentity } from '../events/cloud-event';
import type { RegistryEvent } from '../registry/registry-event';
import { presentAnnouncements } from './announcements';
import { recipientsOf } from './recipients';
import { lockFeed } from './feeds';
import {
  attemptsOf,
  enqueue,
  eventsAfter,
  HIGHEST_KEY,
  idOf,
  insertEvents,
  keyIn,
  keysOfTokens,
  startOf,
} from './stored-events';

/** Events per transaction. Transactions are short because a running service waits for each. */
const BATCH = 200;

/**
 * Enqueues the next stored events for a channel that is being filled. Events that are recorded meanwhile are
 * enqueued after these: recording leaves them to later calls.
 *
 * @returns `filled` when all stored events are enqueued: from then on events are enqueued when they are
 *   recorded. `purged` if events of the channel must be read from the chain first, up to the block `upTo`.
 */
export async function fillChannel(
  database: Database,
  { feed, channel }: { feed: number; channel: number },
  now: number,
): Promise<'more' | 'filled' | { purged: { fromBlock: number; upTo: number } }> {
  return database.db.transaction().execute(async (transaction) => {
    const { purged_up_to: purgedUpTo } = await lockFeed(transaction, feed);
    const cursor = await transaction
      .selectFrom('channels')
      .select(['fill_block', 'fill_index'])
      .where('id', '=', channel)
      .executeTakeFirst();
    if (cursor === undefined || cursor.fill_block === null) return 'filled';
    const { fill_block: block, fill_index: index } = cursor;
    const fromBlock = index === null ? block + 1 : block;
    if (purgedUpTo !== null && fromBlock <= purgedUpTo) return { purged: { fromBlock, upTo: purgedUpTo } };
    const after =
      index === null ? startOf(fromBlock) : { block_number: block, log_index: index, id: HIGHEST_KEY };
    const events = await eventsAfter(transaction, feed, after)
      .where('orphaned_at', 'is', null)
      .where('audience', '=', 'all')
      .limit(BATCH)
      .execute();
    const { rules } = await recipientsOf(database, transaction, feed);
    const wanted = events.filter(({ body }) => rules.get(channel)?.wants(JSON.parse(body) as CloudEvent));
    const present = await presentAnnouncements(transaction, channel, wanted);
    // A reorganisation may have taken the channel back to blocks with transactions that were mined again.
    const attempts = await attemptsOf(transaction, present.map(idOf), channel);
    const delivered = new Set(attempts.flatMap(({ event, isDelivered }) => (isDelivered ? event : [])));
    await enqueue(
      transaction,
      present.flatMap(({ id, token }) => (delivered.has(id) ? [] : { channel, token, event: id })),
      now,
    );
    const last = events.length < BATCH ? undefined : events.at(-1);
    await sql`update channels
      set fill_block = ${last?.block_number ?? null}, fill_index = ${last?.log_index ?? null}
      where id = ${channel}`.execute(transaction);
    return last === undefined ? 'filled' : 'more';
  });
}

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
    const { fromBlock, toBlock } = range;
    const { numAffectedRows } =
      await sql`update feeds set purged_up_to = ${fromBlock > 0 ? fromBlock - 1 : null}
      where id = ${feed} and purged_up_to between ${fromBlock} and ${toBlock}`.execute(transaction);
    if (numAffectedRows === 0n) return false;
    const stored = await transaction
      .selectFrom('events')
      .select(['block_number', 'log_index'])
      .where('feed', '=', feed)
      .where((eb) => eb.between('block_number', fromBlock, toBlock))
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
      // They were in the stream when they were recorded first.
      isUnfetched: true,
    }));
    await insertEvents(transaction, feed, events, now);
    return true;
  });
}
