import type { Selectable, Transaction } from 'kysely';
import { inBatches } from '../database/batches';
import type { Database } from '../database/database';
import type { QueuesTable, Schema } from '../database/schema';
import type { CloudEvent } from '../events/cloud-event';
import { isOfBlock, retract, retractedAmong, type OrphanedAnnouncement } from './announcements';
import { recipientsOf } from './channels';
import { keepBlocks, moveCursor, type KeptBlock, type OpenFeed } from './feeds';
import { attemptsOf, bytesOfId, eventsAfter, idOf, idOfBytes, startOf, type Told } from './stored-events';

/** An event that was delivered, or may have been, before its block was orphaned. */
interface OrphanedEvent {
  eventId: string;
  type: string;
  tokenId: string;
  blockNumber: number;
  transactionHash: string;
  /** `attempted`: no attempt succeeded, but the receiver may still have got one. */
  outcome: 'delivered' | 'attempted';
}

/** The result of a rewind. */
export interface Rewound {
  /**
   * Number of undelivered events that were withdrawn. They are sent only if their transactions are mined
   * again.
   */
  withdrawn: number;
  orphaned: OrphanedEvent[];
}

/** An event of a block that is orphaned. */
type OrphanedRow = OrphanedAnnouncement & { type: string; token_id: string };

/**
 * Rewinds a feed to a block that is still on the chain, in one transaction. Undelivered events of later
 * blocks are withdrawn, delivered ones are recorded as orphans. Channels with retractions get a retraction of
 * each orphan that they received, or may have.
 *
 * @returns `in flight`, with nothing changed, while an event of an affected token is being delivered: the
 *   outcome of the delivery decides whether the event is an orphan. Hold the feed, so that no delivery
 *   begins, and call this again.
 */
export async function rewindFeed(
  database: Database,
  open: OpenFeed,
  ancestor: KeptBlock,
  now: number,
): Promise<Rewound | 'in flight'> {
  const { id: feed } = open;
  return database.db
    .transaction()
    .execute(async (transaction) => {
      await moveCursor(transaction, open, { nextBlock: ancestor.number + 1, lastBlockHash: ancestor.hash });
      // Read before the queues are locked, as everywhere: any other order could deadlock.
      const recipients = await recipientsOf(database, transaction, feed);
      const rows = await eventsAfter(transaction, feed, startOf(ancestor.number + 1))
        .innerJoin('tokens', 'tokens.id', 'events.token')
        .select(['event_id', 'original', 'type', 'token_id', 'block_hash', 'body'])
        .where('orphaned_at', 'is', null)
        .where(isOfBlock)
        .execute();
      const tokens = [...new Set(rows.map(({ token }) => token))];
      const queues = await lockQueues(database, transaction, feed, tokens);
      if (queues.some((queue) => isBeingSent(queue, now))) throw new InFlight();
      const orphans = new Set(rows.map(idOf));
      const told = await attemptsOf(transaction, [...orphans]);
      const cutOff: Told[] = [];
      for (const queue of queues)
        for (const event of await removeFromQueue(transaction, queue, orphans, now))
          cutOff.push({ event, channel: queue.channel, isDelivered: false });
      await dropDeadLetters(transaction, queues, [...orphans]);
      const retracting = recipients.flatMap(({ channel, hasRetractions }) => (hasRetractions ? channel : []));
      await retract(transaction, feed, rows, retracting, cutOff, now);
      const rewound = await note(transaction, feed, rows, [...told, ...cutOff], now);
      await refillFrom(transaction, feed, ancestor.number);
      await transaction
        .deleteFrom('blocks')
        .where('feed', '=', feed)
        .where('number', '>', ancestor.number)
        .execute();
      await keepBlocks(transaction, feed, [ancestor], 0);
      return rewound;
    })
    .catch((error: unknown) => {
      if (error instanceof InFlight) return 'in flight';
      throw error;
    });
}

/** Thrown to roll the transaction back. */
class InFlight extends Error {}

async function dropDeadLetters(
  db: Transaction<Schema>,
  queues: readonly { channel: number }[],
  events: readonly number[],
): Promise<void> {
  const channels = [...new Set(queues.map(({ channel }) => channel))];
  for (const channel of channels)
    await inBatches(events, (some) =>
      db.deleteFrom('dead_letters').where('channel', '=', channel).where('event', 'in', some).execute(),
    );
}

/**
 * Records orphans. Events that were sent, or may have been, are marked and kept, so that they are recognised
 * if they are mined again. The others are deleted.
 */
async function note(
  db: Transaction<Schema>,
  feed: number,
  rows: readonly OrphanedRow[],
  told: readonly Told[],
  now: number,
): Promise<Rewound> {
  const originals = rows.filter(({ original }) => original === null);
  const originalOf = new Map(rows.map(({ id, original }) => [id, original ?? id]));
  const delivered = new Set(told.flatMap((one) => (one.isDelivered ? originalOf.get(one.event) : [])));
  // A retraction shows that an event may have been received, also if no attempt was ever recorded.
  const kept = new Set([...told.map(({ event }) => event), ...(await retractedAmong(db, originals))]);
  const orphaned: OrphanedEvent[] = [];
  for (const row of rows) {
    if (!kept.has(row.id)) {
      await db.deleteFrom('events').where('id', '=', row.id).execute();
      continue;
    }
    await db.updateTable('events').set({ orphaned_at: now }).where('id', '=', row.id).execute();
    if (row.original !== null) continue;
    const outcome = delivered.has(row.id) ? 'delivered' : 'attempted';
    await noteOrphan(db, feed, row, outcome, now);
    orphaned.push({
      eventId: idOfBytes(row.event_id),
      type: row.type,
      tokenId: row.token_id,
      blockNumber: row.block_number,
      transactionHash: (JSON.parse(row.body) as CloudEvent).data.transactionHash,
      outcome,
    });
  }
  const undelivered = originals.filter(({ id }) => !delivered.has(id));
  return { withdrawn: undelivered.length, orphaned };
}

async function noteOrphan(
  db: Transaction<Schema>,
  feed: number,
  { event_id, block_number, block_hash, body }: OrphanedRow,
  outcome: OrphanedEvent['outcome'],
  now: number,
): Promise<void> {
  await db
    .insertInto('orphans')
    .values({
      feed,
      event_id: bytesOfId(idOfBytes(event_id)),
      block_number,
      block_hash,
      outcome,
      body,
      orphaned_at: now,
    })
    .onConflict((conflict) =>
      // A branch may become canonical again, and be orphaned again.
      conflict
        .columns(['feed', 'event_id', 'block_hash'])
        .doUpdateSet({ outcome, orphaned_at: now, mined_again_in: null }),
    )
    .execute();
}

/** Channels that were filled beyond the block are filled again from there. */
async function refillFrom(db: Transaction<Schema>, feed: number, block: number): Promise<void> {
  await db
    .updateTable('channels')
    .set({ fill_block: block, fill_index: null })
    .where('feed', '=', feed)
    .where('fill_block', '>', block)
    .execute();
}

/** A token queue as it is stored. */
type Queue = Selectable<QueuesTable>;

/**
 * Reads the queues of tokens, in the order of their keys. On PostgreSQL they are locked until the transaction
 * ends.
 */
async function lockQueues(
  { engine }: Pick<Database, 'engine'>,
  db: Transaction<Schema>,
  feed: number,
  tokens: readonly number[],
): Promise<Queue[]> {
  const channels = await db
    .selectFrom('channels')
    .select('id')
    .where('feed', '=', feed)
    .orderBy('id')
    .execute();
  const inOrder = [...tokens].sort((left, right) => left - right);
  const locked: Queue[] = [];
  for (const { id: channel } of channels)
    locked.push(
      ...(await inBatches(inOrder, (some) =>
        db
          .selectFrom('queues')
          .selectAll()
          .where('channel', '=', channel)
          .where('token', 'in', some)
          .orderBy('token')
          .$if(engine === 'postgres', (query) => query.forUpdate())
          .execute(),
      )),
    );
  return locked;
}

/** Whether events of the queue are being sent. */
function isBeingSent({ lease, next_attempt_at }: Queue, now: number): boolean {
  return lease !== null && (next_attempt_at ?? 0) > now;
}

/**
 * Removes events from a queue that has no delivery under way. The remaining events move up in order.
 *
 * @returns the removed events of which an attempt may have begun without being recorded, because the process
 *   died during it.
 */
async function removeFromQueue(
  db: Transaction<Schema>,
  queue: Queue,
  unwanted: ReadonlySet<number>,
  now: number,
): Promise<number[]> {
  const { channel, token, head, tail, attempts, next_attempt_at, lease, claimed_to } = queue;
  if (tail < head) return [];
  const sentTo = lease === null ? queue.sent_to : Math.max(queue.sent_to, claimed_to ?? 0);
  const waiting = await db
    .selectFrom('deliveries')
    .select(['position', 'event'])
    .where('channel', '=', channel)
    .where('token', '=', token)
    .where('position', '>=', head)
    .where('position', '<=', tail)
    .orderBy('position')
    .execute();
  const firstUnwanted = waiting.findIndex(({ event }) => unwanted.has(event));
  if (firstUnwanted < 0) return [];
  const maySent = (position: number): boolean => position <= sentTo || (position === head && attempts > 0);
  const removed = waiting.filter(({ event }) => unwanted.has(event));
  const cutOff = removed.filter(({ position }) => maySent(position));
  const from = head + firstUnwanted;
  await db
    .deleteFrom('deliveries')
    .where('channel', '=', channel)
    .where('token', '=', token)
    .where('position', '>=', from)
    .execute();
  // Usually empty: events that are sent again on request are older than the events they wait behind.
  const moving = waiting
    .slice(firstUnwanted)
    .filter(({ event }) => !unwanted.has(event))
    .map(({ event }, index) => ({ channel, token, position: from + index, event }));
  await inBatches(moving, (some) => db.insertInto('deliveries').values(some).execute());
  const isHeadGone = firstUnwanted === 0;
  const newTail = tail - removed.length;
  await db
    .updateTable('queues')
    .set({
      tail: newTail,
      next_attempt_at: newTail < head ? null : isHeadGone ? now : next_attempt_at,
      lease: null,
      claimed_to: null,
      sent_to: sentTo - removed.filter(({ position }) => position <= sentTo).length,
      ...(isHeadGone && { attempts: 0, first_attempted_at: null }),
    })
    .where('channel', '=', channel)
    .where('token', '=', token)
    .execute();
  return cutOff.map(({ event }) => event);
}
