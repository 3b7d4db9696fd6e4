import type { Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import type { KeptBlock, OpenFeed } from './feed-cursor';
import { keepBlocks, moveCursor } from './move-cursor';
import { affectedStreams, lockStreams, removeFromStream } from './withdraw-deliveries';

/** An event that had reached the subscriber when its block was orphaned, or may have. */
export interface OrphanedEvent {
  eventId: string;
  type: string;
  tokenId: string;
  blockNumber: number;
  transactionHash: string;
  /** `attempted`: no attempt succeeded, but one may have been received all the same. */
  outcome: 'delivered' | 'attempted';
}

/** What a rewind did. */
export interface Rewound {
  /** Events that were still undelivered and are not delivered any more, unless their transactions are mined again. */
  withdrawn: number;
  orphaned: OrphanedEvent[];
}

interface OrphanedRow {
  event_id: string;
  type: string;
  token_id: string;
  block_number: number;
  block_hash: string;
  transaction_hash: string;
  body: string;
}

/**
 * Takes a feed back to a block that is still on the chain, in one transaction: undelivered events of later blocks are withdrawn,
 * delivered ones are noted as orphans.
 *
 * @returns `in flight` and nothing changed while a delivery of an affected token is under way: whether it succeeds decides what its
 *   event is. Hold the feed, so that no other begins, and ask again.
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
      const waiting = new Set<string>();
      const attempted = new Set<string>();
      for (const stream of streams) {
        const removed = await removeFromStream(transaction, stream, orphans, now);
        removed.eventIds.forEach((id) => waiting.add(id));
        if (removed.attempted) attempted.add(removed.attempted);
      }
      for (const id of await deadLettersAmong(transaction, feed, ancestor.number)) {
        waiting.add(id);
        attempted.add(id);
      }
      const delivered = await deliveredAmong(transaction, feed, ancestor.number);
      const rewound = classify(rows, { delivered, waiting, attempted });
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

/** Rolls the transaction back. */
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

async function deadLettersAmong(db: Transaction<Schema>, feed: string, block: number): Promise<string[]> {
  const dead = await db
    .deleteFrom('dead_letters')
    .where('feed', '=', feed)
    .where('event_id', 'in', (eb) =>
      eb
        .selectFrom('events')
        .select('event_id')
        .where('feed', '=', feed)
        .where('block_number', '>', block)
        .where('orphaned_at', 'is', null),
    )
    .returning('event_id')
    .execute();
  return dead.map(({ event_id }) => event_id);
}

/** Some attempt succeeded. */
async function deliveredAmong(
  db: Transaction<Schema>,
  feed: string,
  block: number,
): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('events')
    .innerJoin('attempts', (join) =>
      join
        .onRef('attempts.feed', '=', 'events.feed')
        .onRef('attempts.event_id', '=', 'events.event_id')
        .on('attempts.error', 'is', null),
    )
    .select('events.event_id')
    .where('events.feed', '=', feed)
    .where('events.block_number', '>', block)
    .where('events.orphaned_at', 'is', null)
    .execute();
  return new Set(rows.map(({ event_id }) => event_id));
}

function classify(
  rows: readonly OrphanedRow[],
  known: { delivered: ReadonlySet<string>; waiting: ReadonlySet<string>; attempted: ReadonlySet<string> },
): Rewound {
  const orphaned = rows.flatMap((row): OrphanedEvent[] => {
    const isDelivered = known.delivered.has(row.event_id);
    if (!isDelivered && !known.attempted.has(row.event_id)) return [];
    return [
      {
        eventId: row.event_id,
        type: row.type,
        tokenId: row.token_id,
        blockNumber: row.block_number,
        transactionHash: row.transaction_hash,
        outcome: isDelivered ? 'delivered' : 'attempted',
      },
    ];
  });
  const withdrawn = rows.filter(
    ({ event_id }) => known.waiting.has(event_id) && !known.delivered.has(event_id),
  );
  return { withdrawn: withdrawn.length, orphaned };
}

/** Delivered events stay, marked, so that they are known should they be mined again; withdrawn ones go. */
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
        .onConflict((conflict) => conflict.columns(['feed', 'event_id', 'block_hash']).doNothing())
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
