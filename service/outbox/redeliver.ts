import type { Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { presentAnnouncements } from './announcements';
import { recipientsOf, type Recipient } from './channels';
import { lockFeed } from './feeds';
import { endPauses } from './claim-queues';
import type { CloudEvent } from '../events/cloud-event';
import { bytesOfId, enqueue, isEventId } from './stored-events';

/** The events to send again. */
export type Selection = { eventId: string } | { dead: true } | { fromBlock: number };

/** The number of events queued again, and of those that were already waiting. */
interface Redelivered {
  enqueued: number;
  waiting: number;
}

interface Place {
  block_number: number;
  log_index: number;
  /** Orders a retraction after its event, whose block number and log index it has. */
  id: number;
}

interface StoredEvent extends Place {
  token: number;
  body: string;
  audience: 'all' | 'retracting';
}

/** Events per transaction. Transactions are short because a running service waits for each. */
const BATCH = 200;

/**
 * Appends events to a channel's token queues again, in chain order, with the ids that were sent before.
 * Events that the subscription does not want, or whose blocks were orphaned, are not sent again. An event
 * that was retracted and announced again is sent as it was announced last. An event that waits ends the pause
 * of its token's queue.
 */
export async function redeliver(
  database: Database,
  { feed, channel }: { feed: number; channel: number },
  selection: Selection,
  now: number,
): Promise<Redelivered> {
  const total = { enqueued: 0, waiting: 0 };
  let after: Place = { block_number: -1, log_index: -1, id: 0 };
  for (;;) {
    const batch = await database.db.transaction().execute(async (transaction) => {
      await lockFeed(transaction, feed);
      const events = await eventsAfter(transaction, { feed, channel }, selection, after);
      if (events.length === 0) return events;
      const recipients = await recipientsOf(database, transaction, feed);
      const recipient = recipients.find((one) => one.channel === channel);
      const found = 'dead' in selection ? events : await presentOf(transaction, channel, events);
      const wanted = found.filter((event) => isFor(recipient, selection, event));
      const waiting = await waitingAmong(transaction, channel, wanted);
      const due = wanted.filter(({ id }) => !waiting.has(id));
      await enqueue(
        transaction,
        due.map(({ id, token }) => ({ channel, token, event: id })),
        now,
      );
      // An event that waited when it was looked for may have become a dead letter meanwhile.
      if (due.length > 0)
        await transaction
          .deleteFrom('dead_letters')
          .where('channel', '=', channel)
          .where(
            'event',
            'in',
            due.map(({ id }) => id),
          )
          .execute();
      const tokens = wanted.flatMap(({ id, token }) => (waiting.has(id) ? token : []));
      if (tokens.length > 0) await endPauses(database, transaction, { channel, tokens, now });
      total.enqueued += due.length;
      total.waiting += waiting.size;
      return events;
    });
    const last = batch.at(-1);
    if (last === undefined) return total;
    after = last;
  }
}

/** The rows to send. Retractions, and events under a further id, go only to channels that had them before. */
async function presentOf(
  db: Transaction<Schema>,
  channel: number,
  events: readonly StoredEvent[],
): Promise<StoredEvent[]> {
  const originals = events.filter(({ audience }) => audience === 'all');
  const others = events.filter(({ audience }) => audience === 'retracting');
  const queued = await queuedAmong(db, channel, others);
  const present = await presentAnnouncements(db, channel, originals);
  return [...present, ...others.filter(({ id }) => queued.has(id))];
}

/** The keys of those events that wait in the channel. */
async function waitingAmong(
  db: Transaction<Schema>,
  channel: number,
  events: readonly { id: number; token: number }[],
): Promise<ReadonlySet<number>> {
  if (events.length === 0) return new Set();
  const rows = await db
    .selectFrom('deliveries')
    .innerJoin('queues', (join) =>
      join
        .onRef('queues.channel', '=', 'deliveries.channel')
        .onRef('queues.token', '=', 'deliveries.token')
        .onRef('deliveries.position', '>=', 'queues.head'),
    )
    .select('deliveries.event')
    .where('deliveries.channel', '=', channel)
    .where('deliveries.token', 'in', [...new Set(events.map(({ token }) => token))])
    .where(
      'deliveries.event',
      'in',
      events.map(({ id }) => id),
    )
    .execute();
  return new Set(rows.map(({ event }) => event));
}

/** The keys of those events that were ever enqueued for the channel. */
async function queuedAmong(
  db: Transaction<Schema>,
  channel: number,
  events: readonly StoredEvent[],
): Promise<ReadonlySet<number>> {
  if (events.length === 0) return new Set();
  const rows = await db
    .selectFrom('deliveries')
    .select('event')
    .where('channel', '=', channel)
    .where('token', 'in', [...new Set(events.map(({ token }) => token))])
    .where(
      'event',
      'in',
      events.map(({ id }) => id),
    )
    .execute();
  return new Set(rows.map(({ event }) => event));
}

/**
 * The channel wanted its dead letters when they were recorded. While it is being filled, other events wait.
 */
function isFor(recipient: Recipient | undefined, selection: Selection, event: StoredEvent): boolean {
  if (recipient === undefined) return false;
  if ('dead' in selection || event.audience === 'retracting') return true;
  return !recipient.isFilling && recipient.wants(JSON.parse(event.body) as CloudEvent);
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
    .select(['id', 'token', 'block_number', 'log_index', 'body', 'audience'])
    .where('feed', '=', feed)
    .where('orphaned_at', 'is', null)
    .where('block_number', '>=', after.block_number)
    .where((eb) =>
      eb.or([
        eb('block_number', '>', after.block_number),
        eb.and([eb('block_number', '=', after.block_number), eb('log_index', '>', after.log_index)]),
        eb.and([
          eb('block_number', '=', after.block_number),
          eb('log_index', '=', after.log_index),
          eb('id', '>', after.id),
        ]),
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
    .orderBy('id')
    .limit(BATCH)
    .execute();
}
