import type { Selectable, Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { EventsTable, Schema } from '../database/schema';
import type { KeptBlock, OpenFeed } from './feed-cursor';
import { keepBlocks, moveCursor } from './move-cursor';
import { affectedStreams, lockStreams, removeFromStream } from './withdraw-deliveries';

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

type OrphanedRow = Pick<
  Selectable<EventsTable>,
  'event_id' | 'type' | 'token_id' | 'block_number' | 'block_hash' | 'transaction_hash' | 'body'
>;

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
  const { feed } = open;
  return database.db
    .transaction()
    .execute(async (transaction) => {
      await moveCursor(transaction, open, { nextBlock: ancestor.number + 1, lastBlockHash: ancestor.hash });
      const affected = await affectedStreams(transaction, feed, ancestor.number);
      const streams = await lockStreams(database, transaction, affected);
      if (streams.some(({ next_attempt_at, lease }) => lease !== null && (next_attempt_at ?? 0) > now)) {
        throw new InFlight();
      }
      const rows = await eventsAfter(transaction, feed, ancestor.number);
      const orphans = new Set(rows.map(({ event_id }) => event_id));
      const succeeded = new Map(await attemptedAmong(transaction, feed, ancestor.number));
      for (const stream of streams) {
        const cutOff = await removeFromStream(transaction, stream, orphans, now);
        if (cutOff !== undefined && !succeeded.has(cutOff)) succeeded.set(cutOff, false);
      }
      await dropDeadLetters(transaction, feed, [...orphans]);
      const rewound = classify(rows, succeeded);
      await note(transaction, feed, rows, rewound, now);
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

async function eventsAfter(db: Transaction<Schema>, feed: string, block: number): Promise<OrphanedRow[]> {
  return db
    .selectFrom('events')
    .select(['event_id', 'type', 'token_id', 'block_number', 'block_hash', 'transaction_hash', 'body'])
    .where('feed', '=', feed)
    .where('block_number', '>', block)
    .where('orphaned_at', 'is', null)
    .orderBy('block_number')
    .orderBy('log_index')
    .execute();
}

/** The events with recorded attempts, and whether one of the attempts succeeded. */
async function attemptedAmong(
  db: Transaction<Schema>,
  feed: string,
  block: number,
): Promise<ReadonlyMap<string, boolean>> {
  const rows = await db
    .selectFrom('events')
    .innerJoin('attempts', (join) =>
      join.onRef('attempts.feed', '=', 'events.feed').onRef('attempts.event_id', '=', 'events.event_id'),
    )
    .select(['events.event_id', 'attempts.error'])
    .distinct()
    .where('events.feed', '=', feed)
    .where('events.block_number', '>', block)
    .where('events.orphaned_at', 'is', null)
    .execute();
  const succeeded = new Map<string, boolean>();
  for (const { event_id, error } of rows)
    succeeded.set(event_id, error === null || succeeded.get(event_id) === true);
  return succeeded;
}

function classify(rows: readonly OrphanedRow[], succeeded: ReadonlyMap<string, boolean>): Rewound {
  const orphaned = rows
    .filter(({ event_id }) => succeeded.has(event_id))
    .map(({ event_id, type, token_id, block_number, transaction_hash }): OrphanedEvent => ({
      eventId: event_id,
      type,
      tokenId: token_id,
      blockNumber: block_number,
      transactionHash: transaction_hash,
      outcome: succeeded.get(event_id) ? 'delivered' : 'attempted',
    }));
  const delivered = orphaned.filter(({ outcome }) => outcome === 'delivered');
  return { withdrawn: rows.length - delivered.length, orphaned };
}

async function dropDeadLetters(
  db: Transaction<Schema>,
  feed: string,
  eventIds: readonly string[],
): Promise<void> {
  for (let from = 0; from < eventIds.length; from += BATCH) {
    await db
      .deleteFrom('dead_letters')
      .where('feed', '=', feed)
      .where('event_id', 'in', eventIds.slice(from, from + BATCH))
      .execute();
  }
}

/**
 * Records orphans. Delivered events stay, marked, to be recognised if they are mined again; withdrawn ones
 * are deleted.
 */
async function note(
  db: Transaction<Schema>,
  feed: string,
  rows: readonly OrphanedRow[],
  { orphaned }: Rewound,
  now: number,
): Promise<void> {
  const outcomes = new Map(orphaned.map(({ eventId, outcome }) => [eventId, outcome]));
  for (const { event_id, block_number, block_hash, body } of rows) {
    const outcome = outcomes.get(event_id);
    if (outcome !== undefined) {
      await db
        .insertInto('orphans')
        .values({ feed, event_id, block_number, block_hash, outcome, body, orphaned_at: now })
        .onConflict((conflict) =>
          // A branch may become canonical again, and be orphaned again.
          conflict
            .columns(['feed', 'event_id', 'block_hash'])
            .doUpdateSet({ outcome, orphaned_at: now, mined_again_in: null }),
        )
        .execute();
    }
    const ofEvent = { feed, event_id };
    if (outcome === 'delivered') {
      await db
        .updateTable('events')
        .set({ orphaned_at: now })
        .where((eb) => eb.and(ofEvent))
        .execute();
    } else {
      await db
        .deleteFrom('deliveries')
        .where((eb) => eb.and(ofEvent))
        .execute();
      await db
        .deleteFrom('events')
        .where((eb) => eb.and(ofEvent))
        .execute();
    }
  }
}
