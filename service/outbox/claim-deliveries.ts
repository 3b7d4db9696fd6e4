import type { Expression, ExpressionBuilder, Kysely, SqlBool } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';

/** An event that only this process may deliver until its lease ends. */
export interface ClaimedDelivery {
  stream: string;
  lease: string;
  /** The delivery falls due again at this time unless it is settled. Epoch milliseconds. */
  leasedUntil: number;
  /** 1 for the first attempt. */
  attempt: number;
  /** Start of the event's first attempt, which may be this one. Epoch milliseconds. */
  firstAttemptedAt: number;
  eventId: string;
  type: string;
  tokenId: string;
  transactionHash: string;
  /** The request body, exactly as it is sent. */
  body: string;
}

/** The feed to claim from, and the terms of the lease. */
export interface Claim {
  feed: string;
  lease: string;
  limit: number;
  now: number;
  leaseMs: number;
}

/**
 * Claims the heads of up to `limit` due token queues. It is one statement on an index of the queues that are
 * not empty, so its cost does not grow with the backlog behind the heads. A claim that is never settled falls
 * due again when its lease ends. Concurrent processes skip each other's rows.
 */
export async function claimDeliveries(
  { engine }: Pick<Database, 'engine'>,
  db: Kysely<Schema>,
  { feed, lease, limit, now, leaseMs }: Claim,
): Promise<ClaimedDelivery[]> {
  const claimed = await db
    // PostgreSQL evaluates a common table expression once; it might evaluate a subquery once per row.
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
 * Joins each non-empty token queue with the event at its head. The caller adds the columns and the
 * conditions.
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

/** Time at which the next queue of a feed falls due. Undefined if nothing waits or the feed is held. */
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

/** Resets a token queue to its state before the claim. The claim does not count as an attempt. */
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

/**
 * Releases the deliveries of a lease after its claim failed: the claim may have been committed all the same.
 */
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
 * Makes deliveries due whose wait exceeds the longest possible wait. Their time was set before the system
 * clock was set back; without this they would not be sent until the clock reaches that time.
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

/** Releases the claims of a process that died. Call it only in the one process that owns the database. */
export async function releaseLeases(db: Kysely<Schema>, feed: string, now: number): Promise<void> {
  await db
    .updateTable('streams')
    .set({ lease: null, next_attempt_at: now })
    .where('feed', '=', feed)
    .where('lease', 'is not', null)
    .execute();
}
