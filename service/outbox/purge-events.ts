import { setTimeout as sleep } from 'node:timers/promises';
import type { Expression, ExpressionBuilder, Kysely, SqlBool } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';

/** Events per transaction. Transactions are short because a running service waits for each. */
const BATCH = 100;

interface OldEvent {
  event_id: string;
  block_number: number;
}

/**
 * Deletes a feed's events, with their attempts and queue positions, that were recorded and last sent before a
 * time (epoch milliseconds). These are kept, however old they are:
 *
 * - events not delivered: they wait, or are dead letters;
 * - events that a reorganisation could still orphan: their blocks come after the oldest kept block;
 * - delivered events that a reorganisation orphaned: their rows are needed to recognise them when they are
 *   mined again.
 *
 * It pauses after each batch for as long as the batch took. If the signal aborts, it ends after the current
 * batch.
 *
 * @returns the number of deleted events.
 */
export async function purgeEvents(
  { db }: Pick<Database, 'db'>,
  feed: string,
  before: number,
  signal?: AbortSignal,
): Promise<number> {
  let removed = 0;
  for await (const events of oldEvents(db, feed, before)) {
    if (signal?.aborted) break;
    removed += await remove(db, feed, events, before);
  }
  return removed;
}

/** Number of events that `purgeEvents` would delete. */
export async function countPurgeable(db: Kysely<Schema>, feed: string, before: number): Promise<number> {
  let count = 0;
  for await (const events of oldEvents(db, feed, before)) {
    const { done } = await db
      .selectFrom('events')
      .select((eb) => eb.fn.countAll().as('done'))
      .where('feed', '=', feed)
      .where('event_id', 'in', events.map(idOf))
      .where((eb) => isDone(eb, before))
      .executeTakeFirstOrThrow();
    count += Number(done);
  }
  return count;
}

/** The last block whose events were deleted. Undefined if none were. */
export async function purgedUpTo(db: Kysely<Schema>, feed: string): Promise<number | undefined> {
  const row = await db.selectFrom('feeds').select('purged_up_to').where('feed', '=', feed).executeTakeFirst();
  return row?.purged_up_to ?? undefined;
}

/**
 * Yields batches of old events in block order. Events are recorded in block order, so it ends at the first
 * batch that has no old event.
 */
async function* oldEvents(db: Kysely<Schema>, feed: string, before: number): AsyncGenerator<OldEvent[]> {
  const oldestKept = await oldestKeptOf(db, feed);
  let after: OldEvent = { block_number: -1, event_id: '' };
  for (;;) {
    const start = performance.now();
    const batch = await eventsAfter(db, feed, after, oldestKept);
    const old = batch.filter(({ recorded_at }) => recorded_at < before);
    if (old.length === 0) return;
    yield old;
    after = batch.at(-1) ?? after;
    await sleep(performance.now() - start);
  }
}

/** The oldest kept block: no reorganisation goes further back. -1 if nothing was read yet. */
async function oldestKeptOf(db: Kysely<Schema>, feed: string): Promise<number> {
  const row = await db
    .selectFrom('blocks')
    .select('number')
    .where('feed', '=', feed)
    .orderBy('number')
    .limit(1)
    .executeTakeFirst();
  return row?.number ?? -1;
}

async function eventsAfter(
  db: Kysely<Schema>,
  feed: string,
  after: OldEvent,
  lastBlock: number,
): Promise<(OldEvent & { recorded_at: number })[]> {
  return db
    .selectFrom('events')
    .select(['event_id', 'block_number', 'recorded_at'])
    .where('feed', '=', feed)
    .where('block_number', '>=', after.block_number)
    .where('block_number', '<=', lastBlock)
    .where((eb) => eb.or([eb('block_number', '>', after.block_number), eb('event_id', '>', after.event_id)]))
    .orderBy('block_number')
    .orderBy('event_id')
    .limit(BATCH)
    .execute();
}

/** Deletes the events that may be deleted, and returns their number. */
async function remove(
  db: Kysely<Schema>,
  feed: string,
  events: readonly OldEvent[],
  before: number,
): Promise<number> {
  return db.transaction().execute(async (transaction) => {
    // Locks the feed's row first, like every transaction that puts events into queues or takes them out.
    const { purged_up_to: last } = await transaction
      .updateTable('feeds')
      .set((eb) => ({ purged_up_to: eb.ref('purged_up_to') }))
      .where('feed', '=', feed)
      .returning('purged_up_to')
      .executeTakeFirstOrThrow();
    const gone = await transaction
      .deleteFrom('events')
      .where('feed', '=', feed)
      .where('event_id', 'in', events.map(idOf))
      .where((eb) => isDone(eb, before))
      .returning(['event_id', 'block_number'])
      .execute();
    if (gone.length === 0) return 0;
    for (const table of ['deliveries', 'attempts'] as const)
      await transaction
        .deleteFrom(table)
        .where('feed', '=', feed)
        .where('event_id', 'in', gone.map(idOf))
        .execute();
    await transaction
      .updateTable('feeds')
      .set({ purged_up_to: Math.max(last ?? 0, ...gone.map(({ block_number }) => block_number)) })
      .where('feed', '=', feed)
      .execute();
    return gone.length;
  });
}

/** One statement: with two, an event that leaves its queue in between could be missed as a dead letter. */
function isDone(eb: ExpressionBuilder<Schema, 'events'>, before: number): Expression<SqlBool> {
  const waiting = eb
    .selectFrom('deliveries')
    .innerJoin('streams', 'streams.stream', 'deliveries.stream')
    .select('deliveries.event_id')
    .whereRef('deliveries.feed', '=', 'events.feed')
    .whereRef('deliveries.event_id', '=', 'events.event_id')
    .whereRef('deliveries.position', '>=', 'streams.head');
  const dead = eb
    .selectFrom('dead_letters')
    .select('dead_letters.event_id')
    .whereRef('dead_letters.feed', '=', 'events.feed')
    .whereRef('dead_letters.event_id', '=', 'events.event_id');
  const sentLately = eb
    .selectFrom('attempts')
    .select('attempts.event_id')
    .whereRef('attempts.feed', '=', 'events.feed')
    .whereRef('attempts.event_id', '=', 'events.event_id')
    .where('attempts.attempted_at', '>=', before);
  return eb.and([
    eb('events.recorded_at', '<', before),
    eb('events.orphaned_at', 'is', null),
    ...[waiting, dead, sentLately].map((one) => eb.not(eb.exists(one))),
  ]);
}

function idOf({ event_id }: { event_id: string }): string {
  return event_id;
}
