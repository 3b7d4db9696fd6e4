import type { Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { recipientsOf, type Recipient } from './channels';
import type { CloudEvent } from './cloud-event';
import { enqueue } from './enqueue';
import { waitingAmong } from './list-deliveries';
import { bytesOfId, isEventId } from './stored-ids';

/** The events to send again. */
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

interface StoredEvent extends Place {
  id: number;
  token: number;
  body: string;
}

/** Events per transaction. Transactions are short because a running service waits for each. */
const BATCH = 200;

/**
 * Appends events to a channel's token queues again, in chain order, with the ids and bodies that were sent
 * before. Events that the subscription does not want, or whose blocks were orphaned, are not sent again.
 */
export async function redeliver(
  database: Database,
  { feed, channel }: { feed: number; channel: number },
  selection: Selection,
  now: number,
): Promise<Redelivered> {
  const total = { enqueued: 0, waiting: 0 };
  let after: Place = { block_number: -1, log_index: -1 };
  for (;;) {
    const batch = await database.db.transaction().execute(async (transaction) => {
      // Locks the feed's row first, like every transaction that writes several of its queues.
      await transaction
        .updateTable('feeds')
        .set((eb) => ({ held: eb.ref('held') }))
        .where('id', '=', feed)
        .execute();
      const events = await eventsAfter(transaction, { feed, channel }, selection, after);
      if (events.length === 0) return events;
      const recipients = await recipientsOf(database, transaction, feed);
      const recipient = recipients.find((one) => one.channel === channel);
      const wanted = events.filter((event) => isFor(recipient, selection, event));
      const keys = wanted.map(({ id }) => id);
      const waiting = await waitingAmong(transaction, channel, wanted);
      const due = wanted.filter(({ id }) => !waiting.has(id));
      await enqueue(
        transaction,
        due.map(({ id, token }) => ({ channel, token, event: id })),
        now,
      );
      if (keys.length > 0)
        await transaction
          .deleteFrom('dead_letters')
          .where('channel', '=', channel)
          .where('event', 'in', keys)
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

/** Dead letters were wanted when they were recorded. Events that wait to be filled in are enqueued later. */
function isFor(recipient: Recipient | undefined, selection: Selection, { body }: StoredEvent): boolean {
  if (recipient === undefined) return false;
  return 'dead' in selection || (!recipient.isFilling && recipient.wants(JSON.parse(body) as CloudEvent));
}

async function eventsAfter(
  db: Transaction<Schema>,
  { feed, channel }: { feed: number; channel: number },
  selection: Selection,
  after: Place,
): Promise<StoredEvent[]> {
  if ('eventId' in selection && !isEventId(selection.eventId)) return [];
  return db
    .selectFrom('events')
    .select(['id', 'token', 'block_number', 'log_index', 'body'])
    .where('feed', '=', feed)
    .where('orphaned_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('block_number', '>', after.block_number),
        eb.and([eb('block_number', '=', after.block_number), eb('log_index', '>', after.log_index)]),
      ]),
    )
    .where((eb) => {
      if ('eventId' in selection) return eb('event_id', '=', bytesOfId(selection.eventId));
      if ('fromBlock' in selection)
        return eb.and([eb('block_number', '>=', selection.fromBlock), eb('audience', '=', 'all')]);
      const dead = eb.selectFrom('dead_letters').select('event').where('channel', '=', channel);
      return eb('id', 'in', dead);
    })
    .orderBy('block_number')
    .orderBy('log_index')
    .limit(BATCH)
    .execute();
}
