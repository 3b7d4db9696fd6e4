import { sql, type Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { unclaimed, type ClaimedDelivery } from './claim-deliveries';

/** An attempt, as it is recorded. */
export interface AttemptRecord {
  attemptedAt: number;
  milliseconds: number;
  status: number | undefined;
  /** Undefined for success. */
  error: string | undefined;
}

/** What becomes of a claimed delivery; released: no attempt was made. */
export type Settlement =
  | { outcome: 'delivered' | 'dead'; delivery: ClaimedDelivery; attempt: AttemptRecord }
  | { outcome: 'failed'; delivery: ClaimedDelivery; attempt: AttemptRecord; nextAttemptAt: number }
  | { outcome: 'released'; delivery: ClaimedDelivery };

/** The delivery is not tried again: its stream moves on. */
type Over = Extract<Settlement, { outcome: 'delivered' | 'dead' }>;

/**
 * Records attempts and moves their streams on, many in one transaction: a commit is a disk write, and one for
 * each delivery would be most of a delivery's cost. Everything is fenced by the lease: what was claimed by
 * somebody else meanwhile stays theirs.
 *
 * @returns the settlements that were somebody else's.
 */
export async function settleDeliveries(
  { engine }: Pick<Database, 'engine'>,
  db: Transaction<Schema>,
  feed: string,
  settlements: readonly Settlement[],
  now: number,
): Promise<Settlement[]> {
  await recordAttempts(db, feed, settlements);
  // Streams are locked in the order of their names here and in record-range.ts: in any other order the two
  // would deadlock.
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
 * Nearly always all in one round. A delivery that outlived its lease may be settled together with the one
 * that followed it.
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
 * The heads of these streams are done with: the next event of each is due at once. Gives the streams that
 * were still ours.
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

/** A failed attempt: the stream waits, and everything behind its head with it. */
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

/** Claimed but not attempted: as if it had not been claimed. */
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
