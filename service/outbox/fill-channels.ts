import type { ExpressionBuilder } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { recipientsOf } from './channels';
import type { CloudEvent } from './cloud-event';
import { enqueue } from './enqueue';

/** Events per transaction. Transactions are short because a running service waits for each. */
const BATCH = 200;

/**
 * Enqueues the next stored events for a channel that is being filled. Events that are recorded meanwhile are
 * not enqueued for it: they are stored behind these, and their turn comes.
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
    if (purged_up_to !== null && block < purged_up_to)
      return { purged: { fromBlock: block + (index === null ? 1 : 0), upTo: purged_up_to } };
    const events = await transaction
      .selectFrom('events')
      .select(['id', 'token', 'block_number', 'log_index', 'body'])
      .where('feed', '=', feed)
      .where('orphaned_at', 'is', null)
      .where('audience', '=', 'all')
      // A reorganisation may have taken it back to blocks with transactions that were mined again.
      .where((eb) => eb.not(eb.exists(deliveriesTo(eb, channel))))
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
    await enqueue(
      transaction,
      wanted.map(({ id, token }) => ({ channel, token, event: id })),
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

function deliveriesTo(eb: ExpressionBuilder<Schema, 'events'>, channel: number) {
  return eb
    .selectFrom('attempts')
    .select('attempts.event')
    .whereRef('attempts.event', '=', 'events.id')
    .where('attempts.channel', '=', channel)
    .where('attempts.error', 'is', null);
}
