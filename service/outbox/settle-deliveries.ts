import { sql, type Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { unclaimed, type ClaimedDelivery } from './claim-deliveries';

/** The recorded part of an attempt. */
export interface AttemptRecord {
  attemptedAt: number;
  milliseconds: number;
  status: number | undefined;
  /** Undefined on success. */
  error: string | undefined;
}

/** The outcome of a claimed delivery. `released`: no attempt was made. */
export type Settlement =
  | { outcome: 'delivered' | 'dead'; delivery: ClaimedDelivery; attempt: AttemptRecord }
  | { outcome: 'failed'; delivery: ClaimedDelivery; attempt: AttemptRecord; nextAttemptAt: number }
  | { outcome: 'released'; delivery: ClaimedDelivery };

/** A delivery that is not tried again: its queue moves on. */
type Over = Extract<Settlement, { outcome: 'delivered' | 'dead' }>;

/**
 * Records attempts and advances their token queues. Many are settled in one transaction: a commit is a disk
 * write, and would be most of a single delivery's cost. Every write checks the lease: a delivery that another
 * process has claimed meanwhile is left to it.
 *
 * @returns the settlements of deliveries that another process has claimed.
 */
export async function settleDeliveries(
  { engine }: Pick<Database, 'engine'>,
  db: Transaction<Schema>,
  feed: string,
  settlements: readonly Settlement[],
  now: number,
): Promise<Settlement[]> {
  await recordAttempts(db, feed, settlements);
  // Queues are locked in the order of their names, as in record-range.ts: any other order could deadlock.
  if (engine === 'postgres') await lockInOrder(db, settlements);
  const lost: Settlement[] = [];
  for (const round of oneOfEachStream(settlements)) {
    const moved = await moveOn(db, round.filter(isOver), now);
    for (const settled of round) {
      let isMine = moved.has(settled.delivery.stream);
      if (settled.outcome === 'failed') isMine = await waitUntil(db, settled.delivery, settled.nextAttemptAt);
      if (settled.outcome === 'released') isMine = await release(db, settled.delivery, now);
      if (settled.outcome === 'dead' && isMine) await bury(db, feed, settled, now);
      if (!isMine) lost.push(settled);
    }
  }
  return lost;
}

/**
 * Splits settlements into rounds with one per queue. There is nearly always one round; a delivery that
 * outlived its lease may be settled together with the next one of its queue.
 */
function oneOfEachStream(settlements: readonly Settlement[]): Settlement[][] {
  const rounds: Settlement[][] = [];
  const seen = new Map<string, number>();
  for (const settled of settlements) {
    const { stream } = settled.delivery;
    const round = seen.get(stream) ?? 0;
    seen.set(stream, round + 1);
    (rounds[round] ??= []).push(settled);
  }
  return rounds;
}

function isOver(settled: Settlement): settled is Over {
  return settled.outcome === 'delivered' || settled.outcome === 'dead';
}

async function recordAttempts(
  db: Transaction<Schema>,
  feed: string,
  settlements: readonly Settlement[],
): Promise<void> {
  const rows = settlements.flatMap((settled) => {
    if (settled.outcome === 'released') return [];
    const { attemptedAt, milliseconds, status, error } = settled.attempt;
    const { eventId, attempt } = settled.delivery;
    return {
      feed,
      event_id: eventId,
      attempt,
      attempted_at: attemptedAt,
      status: status ?? null,
      error: error ?? null,
      milliseconds,
    };
  });
  if (rows.length > 0) await db.insertInto('attempts').values(rows).execute();
}

async function lockInOrder(db: Transaction<Schema>, settlements: readonly Settlement[]): Promise<void> {
  const streams = settlements.map(({ delivery }) => delivery.stream);
  await db
    .selectFrom('streams')
    .select('stream')
    .where('stream', 'in', streams)
    .orderBy('stream')
    .forUpdate()
    .execute();
}

/**
 * Advances the queues past their heads; the next event of each falls due at once. Returns the queues whose
 * lease this process still held.
 */
async function moveOn(
  db: Transaction<Schema>,
  settlements: readonly Over[],
  now: number,
): Promise<ReadonlySet<string>> {
  if (settlements.length === 0) return new Set();
  const mine = settlements.map(({ delivery }) => sql`(${delivery.stream}, ${delivery.lease})`);
  const moved = await db
    .updateTable('streams')
    .set((eb) => ({
      head: eb('head', '+', 1),
      attempts: 0,
      first_attempted_at: null,
      lease: null,
      next_attempt_at: eb
        .case()
        .when('head', '<', eb.ref('tail'))
        .then(sql<number>`cast(${now} as bigint)`)
        .else(null)
        .end(),
    }))
    .where(sql<boolean>`(stream, lease) in (values ${sql.join(mine)})`)
    .returning('stream')
    .execute();
  return new Set(moved.map(({ stream }) => stream));
}

/** Schedules the next attempt of the queue's head. Everything behind the head waits with it. */
async function waitUntil(
  db: Transaction<Schema>,
  { stream, lease }: ClaimedDelivery,
  nextAttemptAt: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('streams')
    .set({ lease: null, next_attempt_at: nextAttemptAt })
    .where('stream', '=', stream)
    .where('lease', '=', lease)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Releases a delivery that was claimed but not attempted. */
async function release(
  db: Transaction<Schema>,
  { stream, lease }: ClaimedDelivery,
  now: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('streams')
    .set((eb) => unclaimed(eb, now))
    .where('stream', '=', stream)
    .where('lease', '=', lease)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

async function bury(
  db: Transaction<Schema>,
  feed: string,
  { delivery, attempt }: Over,
  now: number,
): Promise<void> {
  const last = {
    died_at: now,
    attempts: delivery.attempt,
    status: attempt.status ?? null,
    error: attempt.error ?? null,
  };
  await db
    .insertInto('dead_letters')
    .values({ feed, event_id: delivery.eventId, ...last })
    .onConflict((conflict) => conflict.columns(['feed', 'event_id']).doUpdateSet(last))
    .execute();
}
