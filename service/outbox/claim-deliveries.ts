import type { Expression, ExpressionBuilder, Kysely, SqlBool } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';

/** An event that this process alone may deliver until its lease ends. */
export interface ClaimedDelivery {
  stream: string;
  lease: string;
  /** When it falls due again unless it is settled, in epoch milliseconds. */
  leasedUntil: number;
  /** 1 for the first attempt. */
  attempt: number;
  /** When the first attempt began, in epoch milliseconds: this one, or an earlier one. */
  firstAttemptedAt: number;
  eventId: string;
  type: string;
  tokenId: string;
  transactionHash: string;
  /** The bytes to send. */
  body: string;
}

/** Whose due deliveries are claimed, and for how long. */
export interface Claim {
  feed: string;
  lease: string;
  limit: number;
  now: number;
  leaseMs: number;
}

/**
 * Claims the due heads of up to `limit` streams. One statement, on an index of the streams that have
 * something to do: its cost does not grow with the backlog behind the heads. A claim that is never settled
 * falls due again when the lease ends. Processes that claim at the same time pass over each other's rows.
 */
export async function claimDeliveries(
  { engine }: Pick<Database, 'engine'>,
  db: Kysely<Schema>,
  { feed, lease, limit, now, leaseMs }: Claim,
): Promise<ClaimedDelivery[]> {
  const claimed = await db
    // A common table expression is evaluated once: as a subquery, PostgreSQL might do so again for each row.
    .with('due', (cte) =>
      cte
        .selectFrom('streams')
        .select('stream')
        .where('feed', '=', feed)
        .where('next_attempt_at', '<=', now)
        .where((eb) => isNotHeld(eb, feed))
        .orderBy('next_attempt_at')
        .limit(limit)
        .$if(engine === 'postgres', (query) => query.forUpdate().skipLocked()),
    )
    .updateTable('streams')
    .set((eb) => ({
      lease,
      next_attempt_at: now + leaseMs,
      attempts: eb('attempts', '+', 1),
      first_attempted_at: eb.fn.coalesce('first_attempted_at', eb.val(now)),
    }))
    .where('stream', 'in', (eb) => eb.selectFrom('due').select('due.stream'))
    .returning('stream')
    .execute();
  if (claimed.length === 0) return [];
  const rows = await selectHeads(db)
    .select([
      'streams.stream',
      'streams.attempts as attempt',
      'streams.first_attempted_at as firstAttemptedAt',
      'events.event_id as eventId',
      'events.type',
      'events.token_id as tokenId',
      'events.transaction_hash as transactionHash',
      'events.body',
    ])
    .where('streams.lease', '=', lease)
    .where(
      'streams.stream',
      'in',
      claimed.map(({ stream }) => stream),
    )
    .execute();
  return rows.map((row) => ({
    ...row,
    firstAttemptedAt: row.firstAttemptedAt ?? now,
    lease,
    leasedUntil: now + leaseMs,
  }));
}

/**
 * The event at the head of each stream in which something waits. What is selected of it, and of which
 * streams, is the caller's.
 */
export function selectHeads(db: Kysely<Schema>) {
  return db
    .selectFrom('streams')
    .innerJoin('deliveries', (join) =>
      join
        .onRef('deliveries.stream', '=', 'streams.stream')
        .onRef('deliveries.position', '=', 'streams.head'),
    )
    .innerJoin('events', (join) =>
      join.onRef('events.feed', '=', 'deliveries.feed').onRef('events.event_id', '=', 'deliveries.event_id'),
    );
}

/** When the next stream of a feed falls due, or undefined if nothing waits, or the feed is held. */
export async function nextDueAt(db: Kysely<Schema>, feed: string): Promise<number | undefined> {
  const row = await db
    .selectFrom('streams')
    .select((eb) => eb.fn.min('next_attempt_at').as('dueAt'))
    .where('feed', '=', feed)
    .where('next_attempt_at', 'is not', null)
    .where((eb) => isNotHeld(eb, feed))
    .executeTakeFirst();
  return row?.dueAt ?? undefined;
}

function isNotHeld(eb: ExpressionBuilder<Schema, 'streams'>, feed: string): Expression<SqlBool> {
  const held = eb.selectFrom('feeds').select('held').where('feeds.feed', '=', feed).where('held', '=', 1);
  return eb.not(eb.exists(held));
}

/** A stream as if it had not been claimed: no attempt was made. */
export function unclaimed(eb: ExpressionBuilder<Schema, 'streams'>, now: number) {
  return {
    lease: null,
    next_attempt_at: now,
    attempts: eb('attempts', '-', 1),
    first_attempted_at: eb
      .case()
      .when('attempts', '=', 1)
      .then(null)
      .else(eb.ref('first_attempted_at'))
      .end(),
  };
}

/** Gives back what was claimed under a lease whose claim failed: whether it was committed is not known. */
export async function releaseLease(
  db: Kysely<Schema>,
  { feed, lease, now }: Pick<Claim, 'feed' | 'lease' | 'now'>,
): Promise<void> {
  await db
    .updateTable('streams')
    .set((eb) => unclaimed(eb, now))
    .where('feed', '=', feed)
    .where('next_attempt_at', 'is not', null)
    .where('lease', '=', lease)
    .execute();
}

/**
 * Makes due what is to wait for longer than anything waits: it was put off by a clock that has been set back
 * since. Without this it would stand still until the clock is there again.
 */
export async function makeDue(
  db: Kysely<Schema>,
  { feed, now, longestWaitMs }: { feed: string; now: number; longestWaitMs: number },
): Promise<void> {
  await db
    .updateTable('streams')
    .set({ lease: null, next_attempt_at: now })
    .where('feed', '=', feed)
    .where('next_attempt_at', '>', now + longestWaitMs)
    .execute();
}

/** Gives back what a process that died had claimed. Only for the one process that owns the database. */
export async function releaseLeases(db: Kysely<Schema>, feed: string, now: number): Promise<void> {
  await db
    .updateTable('streams')
    .set({ lease: null, next_attempt_at: now })
    .where('feed', '=', feed)
    .where('lease', 'is not', null)
    .execute();
}
