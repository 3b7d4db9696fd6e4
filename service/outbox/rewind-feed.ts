import type { Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { isOfBlock, otherRowsOf } from './announcements';
import { recipientsOf } from './channels';
import type { CloudEvent } from '../events/cloud-event';
import type { KeptBlock, OpenFeed } from './feed-cursor';
import { keepBlocks, moveCursor } from './move-cursor';
import { retract, type OrphanedAnnouncement } from './retract';
import { bytesOfId, idOfBytes } from './stored-ids';
import { isBeingSent, lockQueues, removeFromQueue } from './withdraw-deliveries';

/** An event that was delivered, or may have been, before its block was orphaned. */
export interface OrphanedEvent {
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

/** Values per statement: both engines limit the parameters. */
const BATCH = 1_000;

/** An event of a block that is orphaned. */
interface OrphanedRow extends OrphanedAnnouncement {
  type: string;
  token_id: string;
}

/** An event, and a channel that it was sent to, or may have been. */
interface Told {
  event: number;
  channel: number;
  isDelivered: boolean;
}

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
      const rows = await eventsAfter(transaction, feed, ancestor.number);
      const tokens = [...new Set(rows.map(({ token }) => token))];
      const queues = await lockQueues(database, transaction, feed, tokens);
      if (queues.some((queue) => isBeingSent(queue, now))) throw new InFlight();
      const orphans = new Set(rows.map(({ id }) => id));
      const told = await attemptsAmong(transaction, feed, ancestor.number);
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

async function eventsAfter(db: Transaction<Schema>, feed: number, block: number): Promise<OrphanedRow[]> {
  return db
    .selectFrom('events')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .select([
      'events.id',
      'event_id',
      'original',
      'type',
      'token',
      'token_id',
      'block_number',
      'block_hash',
      'log_index',
      'body',
    ])
    .where('events.feed', '=', feed)
    .where('block_number', '>', block)
    .where('orphaned_at', 'is', null)
    .where(isOfBlock)
    .orderBy('block_number')
    .orderBy('log_index')
    .execute();
}

async function attemptsAmong(db: Transaction<Schema>, feed: number, block: number): Promise<Told[]> {
  const rows = await db
    .selectFrom('events')
    .innerJoin('attempts', 'attempts.event', 'events.id')
    .select(['events.id as event', 'attempts.channel', 'attempts.error'])
    .distinct()
    .where('events.feed', '=', feed)
    .where('events.block_number', '>', block)
    .where('events.orphaned_at', 'is', null)
    .where(isOfBlock)
    .execute();
  return rows.map(({ event, channel, error }) => ({ event, channel, isDelivered: error === null }));
}

async function dropDeadLetters(
  db: Transaction<Schema>,
  queues: readonly { channel: number }[],
  events: readonly number[],
): Promise<void> {
  const channels = [...new Set(queues.map(({ channel }) => channel))];
  for (const channel of channels)
    for (let from = 0; from < events.length; from += BATCH)
      await db
        .deleteFrom('dead_letters')
        .where('channel', '=', channel)
        .where('event', 'in', events.slice(from, from + BATCH))
        .execute();
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
  const others = await otherRowsOf(
    db,
    originals.map(({ id }) => id),
  );
  const originalOf = new Map(others.map(({ id, original }) => [id, original]));
  const keyOf = (event: number): number => originalOf.get(event) ?? event;
  const delivered = new Set(told.flatMap(({ event, isDelivered }) => (isDelivered ? keyOf(event) : [])));
  // A retraction shows that an event may have been received, also if no attempt was ever recorded.
  const kept = new Set([...told.map(({ event }) => event), ...originalOf.values()]);
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
