import type { Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { presentAnnouncements } from './announcements';
import { recipientsOf } from './channels';
import type { CloudEvent } from '../events/cloud-event';
import { enqueue } from './enqueue';

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
    // Locks the feed's row first, like every transaction that writes several of its queues.
    const { purged_up_to } = await transaction
      .updateTable('feeds')
      .set((eb) => ({ held: eb.ref('held') }))
      .where('id', '=', feed)
      .returning('purged_up_to')
      .executeTakeFirstOrThrow();
    const cursor = await transaction
      .selectFrom('channels')
      .select(['fill_block', 'fill_index'])
      .where('id', '=', channel)
      .executeTakeFirst();
    if (cursor === undefined || cursor.fill_block === null) return 'filled';
    const { fill_block: block, fill_index: index } = cursor;
    const fromBlock = index === null ? block + 1 : block;
    if (purged_up_to !== null && fromBlock <= purged_up_to)
      return { purged: { fromBlock, upTo: purged_up_to } };
    const events = await transaction
      .selectFrom('events')
      .select(['id', 'token', 'block_number', 'log_index', 'body'])
      .where('feed', '=', feed)
      .where('orphaned_at', 'is', null)
      .where('audience', '=', 'all')
      .where('block_number', '>=', block)
      .where((eb) =>
        index === null
          ? eb('block_number', '>', block)
          : eb.or([eb('block_number', '>', block), eb('log_index', '>', index)]),
      )
      .orderBy('block_number')
      .orderBy('log_index')
      .limit(BATCH)
      .execute();
    const recipients = await recipientsOf(database, transaction, feed);
    const recipient = recipients.find((one) => one.channel === channel);
    const wanted = events.filter(({ body }) => recipient?.wants(JSON.parse(body) as CloudEvent));
    const present = await presentAnnouncements(transaction, channel, wanted);
    // A reorganisation may have taken the channel back to blocks with transactions that were mined again.
    const delivered = await deliveredAmong(
      transaction,
      channel,
      present.map(({ id }) => id),
    );
    await enqueue(
      transaction,
      present.flatMap(({ id, token }) => (delivered.has(id) ? [] : { channel, token, event: id })),
      now,
    );
    const last = events.length < BATCH ? undefined : events.at(-1);
    await transaction
      .updateTable('channels')
      .set({ fill_block: last?.block_number ?? null, fill_index: last?.log_index ?? null })
      .where('id', '=', channel)
      .execute();
    return last === undefined ? 'filled' : 'more';
  });
}

async function deliveredAmong(
  db: Transaction<Schema>,
  channel: number,
  events: readonly number[],
): Promise<ReadonlySet<number>> {
  if (events.length === 0) return new Set();
  const rows = await db
    .selectFrom('attempts')
    .select('event')
    .where('event', 'in', events)
    .where('channel', '=', channel)
    .where('error', 'is', null)
    .execute();
  return new Set(rows.map(({ event }) => event));
}
