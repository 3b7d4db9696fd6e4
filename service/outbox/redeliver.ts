import type { Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import type { CloudEvent } from './cloud-event';
import { waitingAmong } from './list-deliveries';
import { enqueue } from './record-range';

/** The events of a feed to send again. */
export type Selection = { eventId: string } | { dead: true } | { fromBlock: number };

/** The number of events queued again, and of those that were already waiting. */
export interface Redelivered {
  enqueued: number;
  waiting: number;
}

interface Place {
  block_number: number;
  log_index: number;
}

/** Events per transaction. Transactions are short because a running service waits for each. */
const BATCH = 200;

/**
 * Appends events to their token queues again, in chain order, with the ids and bodies that were sent before.
 * Events whose blocks were orphaned are not sent again.
 */
export async function redeliver(
  { db }: Database,
  feed: string,
  selection: Selection,
  now: number,
): Promise<Redelivered> {
  const total = { enqueued: 0, waiting: 0 };
  let after: Place = { block_number: -1, log_index: -1 };
  for (;;) {
    const batch = await db.transaction().execute(async (transaction) => {
      // Locks the feed's row first, like every transaction that writes several of its queues.
      await transaction
        .updateTable('feeds')
        .set((eb) => ({ held: eb.ref('held') }))
        .where('feed', '=', feed)
        .execute();
      const events = await eventsAfter(transaction, feed, selection, after);
      if (events.length === 0) return events;
      const ids = events.map(({ event_id }) => event_id);
      const waiting = await waitingAmong(transaction, feed, ids);
      const due = events.filter(({ event_id }) => !waiting.has(event_id));
      const queued = due.map(({ body }) => JSON.parse(body) as CloudEvent);
      await enqueue(transaction, feed, queued, now);
      await transaction
        .deleteFrom('dead_letters')
        .where('feed', '=', feed)
        .where('event_id', 'in', ids)
        .execute();
      total.enqueued += due.length;
      total.waiting += waiting.size;
      return events;
    });
    const last = batch.at(-1);
    if (last === undefined) return total;
    after = last;
  }
}

async function eventsAfter(
  db: Transaction<Schema>,
  feed: string,
  selection: Selection,
  after: Place,
): Promise<(Place & { event_id: string; body: string })[]> {
  return db
    .selectFrom('events')
    .select(['event_id', 'block_number', 'log_index', 'body'])
    .where('feed', '=', feed)
    .where('orphaned_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('block_number', '>', after.block_number),
        eb.and([eb('block_number', '=', after.block_number), eb('log_index', '>', after.log_index)]),
      ]),
    )
    .where((eb) => {
      if ('eventId' in selection) return eb('event_id', '=', selection.eventId);
      if ('fromBlock' in selection) return eb('block_number', '>=', selection.fromBlock);
      const dead = eb.selectFrom('dead_letters').select('event_id').where('feed', '=', feed);
      return eb('event_id', 'in', dead);
    })
    .orderBy('block_number')
    .orderBy('log_index')
    .limit(BATCH)
    .execute();
}
