import type { Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import type { CloudEvent } from './cloud-event';
import type { KeptBlock, OpenFeed } from './feed-cursor';
import { keepBlocks, moveCursor } from './move-cursor';
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
interface OrphanedRow {
  id: number;
  event_id: Uint8Array | ArrayBuffer;
  type: string;
  token: number;
  token_id: string;
  block_number: number;
  block_hash: string;
  body: string;
}

/** An event, and a channel that it was sent to, or may have been. */
interface Told {
  event: number;
  channel: number;
  isDelivered: boolean;
}

/**
 * Rewinds a feed to a block that is still on the chain, in one transaction. Undelivered events of later
 * blocks are withdrawn, delivered ones are recorded as orphans.
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
      const rows = await eventsAfter(transaction, feed, ancestor.number);
      const tokens = [...new Set(rows.map(({ token }) => token))];
      const queues = await lockQueues(database, transaction, feed, tokens);
      if (queues.some((queue) => isBeingSent(queue, now))) throw new InFlight();
      const orphans = new Set(rows.map(({ id }) => id));
      const told = await attemptsAmong(transaction, feed, ancestor.number);
      for (const queue of queues)
        for (const event of await removeFromQueue(transaction, queue, orphans, now))
          told.push({ event, channel: queue.channel, isDelivered: false });
      await dropDeadLetters(transaction, queues, [...orphans]);
      const rewound = classify(rows, told);
      await note(transaction, feed, rows, rewound, now);
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
    .select(['events.id', 'event_id', 'type', 'token', 'token_id', 'block_number', 'block_hash', 'body'])
    .where('events.feed', '=', feed)
    .where('block_number', '>', block)
    .where('orphaned_at', 'is', null)
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
    .execute();
  return rows.map(({ event, channel, error }) => ({ event, channel, isDelivered: error === null }));
}

function classify(rows: readonly OrphanedRow[], told: readonly Told[]): Rewound {
  const delivered = new Set(told.flatMap(({ event, isDelivered }) => (isDelivered ? event : [])));
  const attempted = new Set(told.map(({ event }) => event));
  const orphaned = rows
    .filter(({ id }) => attempted.has(id))
    .map(({ id, event_id, type, token_id, block_number, body }): OrphanedEvent => ({
      eventId: idOfBytes(event_id),
      type,
      tokenId: token_id,
      blockNumber: block_number,
      transactionHash: (JSON.parse(body) as CloudEvent).data.transactionHash,
      outcome: delivered.has(id) ? 'delivered' : 'attempted',
    }));
  return { withdrawn: rows.length - delivered.size, orphaned };
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
 * Records orphans. Events that were sent, or may have been, stay, marked, to be recognised if they are mined
 * again; the others are deleted.
 */
async function note(
  db: Transaction<Schema>,
  feed: number,
  rows: readonly OrphanedRow[],
  { orphaned }: Rewound,
  now: number,
): Promise<void> {
  const outcomes = new Map(orphaned.map(({ eventId, outcome }) => [eventId, outcome]));
  for (const { id, event_id, block_number, block_hash, body } of rows) {
    const eventId = idOfBytes(event_id);
    const outcome = outcomes.get(eventId);
    if (outcome === undefined) {
      await db.deleteFrom('events').where('id', '=', id).execute();
      continue;
    }
    await db.updateTable('events').set({ orphaned_at: now }).where('id', '=', id).execute();
    await db
      .insertInto('orphans')
      .values({
        feed,
        event_id: bytesOfId(eventId),
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
