import { sql, type ExpressionBuilder, type Kysely, type SqlBool } from 'kysely';
import { traceOfEvent } from '../base/trace';
import { compiled } from '../database/compiled';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { idOf, idOfBytes, waitingDeliveries } from './stored-events';

/** A token queue from which only this process may send until its lease ends. */
export interface ClaimedQueue {
  channel: number;
  token: number;
  lease: string;
  /** The queue falls due again at this time unless it is settled. Epoch milliseconds. */
  leasedUntil: number;
  /**
   * Start of the first attempt of the queue's first event. It may be the attempt that follows. Epoch
   * milliseconds.
   */
  firstAttemptedAt: number;
  /** The next events of the queue, in order. */
  deliveries: ClaimedDelivery[];
}

/** A claimed event. */
export interface ClaimedDelivery {
  /** Key of the event's row. */
  event: number;
  eventId: string;
  type: string;
  /** 1 for the first attempt. */
  attempt: number;
  /** The request body, exactly as it is sent. */
  body: string;
  /** Epoch milliseconds. */
  recordedAt: number;
  /** Its place in a trace, as a `traceparent`. */
  trace: string;
}

/** The recorded part of an attempt. */
export interface AttemptRecord {
  attemptedAt: number;
  milliseconds: number;
  status: number | undefined;
  /** Undefined on success. */
  error: string | undefined;
}

/** An event that was sent, and the outcome. */
export interface Attempted {
  delivery: ClaimedDelivery;
  attempt: AttemptRecord;
}

/** The channel to claim from, and the terms of the lease. */
export interface Claim {
  channel: number;
  lease: string;
  /** Maximum number of queues. */
  limit: number;
  /** Maximum number of events of each queue. */
  perQueue: number;
  now: number;
  leaseMs: number;
}

const claimDue = compiled((db, claim: Claim & { until: number }, engine) => {
  const { channel, lease, limit, now, until, leaseMs, perQueue } = claim;
  return (
    db
      // PostgreSQL evaluates a common table expression once; it might evaluate a subquery once per row.
      .with('due', (cte) =>
        cte
          .selectFrom('queues')
          .select('token')
          .where('channel', '=', channel)
          .where('next_attempt_at', '<=', now)
          .where(maySend(channel))
          .orderBy('next_attempt_at')
          .limit(limit)
          .$if(engine === 'postgres', (query) => query.forUpdate().skipLocked()),
      )
      .updateTable('queues')
      .set((eb) => ({
        lease,
        next_attempt_at: until,
        attempts: eb('attempts', '+', 1),
        first_attempted_at: sql<number>`case when ${IS_LOST_FIRST} then next_attempt_at - ${leaseMs}
          else coalesce(first_attempted_at, next_attempt_at) end`,
        sent_to: POSSIBLY_SENT_TO,
        claimed_to: sql<number>`case when tail < head + ${perQueue} then tail
          else head + ${perQueue} - 1 end`,
      }))
      .where('channel', '=', channel)
      .where('token', 'in', (eb) => eb.selectFrom('due').select('due.token'))
      .returning('token')
  );
});

/**
 * Whether the first attempt of the head may have been lost with its process. Until an attempt is recorded,
 * the column has the time since when the queue is due, which may be days before.
 */
const IS_LOST_FIRST = sql`lease is not null and attempts = 1`;

const claimedDeliveries = compiled(
  (db, { channel, lease, tokens }: { channel: number; lease: string; tokens: number[] }) =>
    waitingDeliveries(db)
      .innerJoin('events', 'events.id', 'deliveries.event')
      .select(['events.id as event', 'events.event_id as eventId', 'events.type', 'events.body'])
      .select(['events.recorded_at as recordedAt', 'events.trace'])
      .select(['queues.token', 'queues.attempts', 'queues.first_attempted_at as firstAttemptedAt'])
      .where('queues.channel', '=', channel)
      .where('queues.token', 'in', tokens)
      .where('queues.lease', '=', lease)
      .whereRef('deliveries.position', '<=', 'queues.claimed_to')
      .orderBy('queues.token')
      .orderBy('deliveries.position'),
);

/**
 * Claims up to `limit` due token queues, with the next events of each. An index contains just the queues that
 * are not empty, so the cost does not grow with the backlog. A claim that is never settled falls due again
 * when its lease ends. Concurrent processes skip each other's rows.
 */
export async function claimQueues(db: Kysely<Schema>, claim: Claim): Promise<ClaimedQueue[]> {
  const { channel, lease, now } = claim;
  const until = now + claim.leaseMs;
  const { rows: claimed } = await claimDue(db, { ...claim, until });
  if (claimed.length === 0) return [];
  const tokens = claimed.map(({ token }) => token);
  const { rows } = await claimedDeliveries(db, { channel, lease, tokens });
  const queues = new Map<number, ClaimedQueue>();
  const terms = { channel, lease, leasedUntil: until };
  for (const { token, attempts, firstAttemptedAt, ...row } of rows) {
    const known = queues.get(token);
    const eventId = idOfBytes(row.eventId);
    const trace = row.trace ?? traceOfEvent(eventId);
    const delivery = { ...row, eventId, trace, attempt: known ? 1 : attempts };
    if (known) known.deliveries.push(delivery);
    else
      queues.set(token, {
        ...{ ...terms, token, deliveries: [delivery] },
        firstAttemptedAt: attempts === 1 ? now : (firstAttemptedAt ?? now),
      });
  }
  return [...queues.values()];
}

/** Position up to which events may have been sent, if the process that holds the current lease has died. */
const POSSIBLY_SENT_TO = sql<number>`case when lease is not null and claimed_to > sent_to
  then claimed_to else sent_to end`;

/** Time at which the next queue falls due. Undefined if nothing waits, or nothing may be sent. */
export async function nextDueAt(db: Kysely<Schema>, channel: number): Promise<number | undefined> {
  const row = await db
    .selectFrom('queues')
    .select((eb) => eb.fn.min('next_attempt_at').as('dueAt'))
    .where('channel', '=', channel)
    .where('next_attempt_at', 'is not', null)
    .where(maySend(channel))
    .executeTakeFirst();
  return row?.dueAt ?? undefined;
}

/** The active channels of a feed that have a due queue, if nothing holds the feed. */
export async function dueChannels(db: Kysely<Schema>, feed: string, now: number): Promise<number[]> {
  // Both engines take the minimum of a channel from the index. PostgreSQL might read all due queues for
  // `exists`.
  const dueAt = sql<number>`(select min(next_attempt_at) from queues
    where queues.channel = channels.id and next_attempt_at is not null)`;
  const rows = await db
    .selectFrom('feeds')
    .innerJoin('channels', 'channels.feed', 'feeds.id')
    .select('channels.id')
    .where('feeds.feed', '=', feed)
    .where('feeds.held', '=', 0)
    .where('channels.state', '=', 'active')
    .where(dueAt, '<=', now)
    .execute();
  return rows.map(idOf);
}

/** Whether the channel is active and its feed is not held. */
function maySend(channel: number) {
  return sql<SqlBool>`exists (select 1 from channels join feeds on feeds.id = channels.feed
    where channels.id = ${channel} and channels.state = 'active' and feeds.held = 0)`;
}

/**
 * Releases a token queue. The claim does not count as an attempt, but the time since when the queue is due
 * stays: an event that is claimed again and again, and never sent, is as old as it is.
 */
export function unclaimed(eb: ExpressionBuilder<Schema, 'queues'>, now: number) {
  return {
    lease: null,
    claimed_to: null,
    next_attempt_at: now,
    attempts: eb('attempts', '-', 1),
  };
}

/**
 * Releases the queues of a lease after its claim failed: the claim may have been committed all the same.
 */
export async function releaseLease(
  db: Kysely<Schema>,
  { channel, lease, now }: Pick<Claim, 'channel' | 'lease' | 'now'>,
): Promise<void> {
  await db
    .updateTable('queues')
    .set((eb) => unclaimed(eb, now))
    .where('channel', '=', channel)
    .where('next_attempt_at', 'is not', null)
    .where('lease', '=', lease)
    .execute();
}

/** The clocks of processes that share a database may differ by so much. */
const CLOCKS_DIFFER_MS = 60_000;

/**
 * Makes queues due whose wait begins in the future, by the clock of now, or is longer than possible. The
 * system clock was set back since; without this they would not be sent until it reaches that time.
 *
 * @param longestPauseMs the longest pause of the schedule, or that a receiver may ask for.
 */
export async function makeDue(
  db: Kysely<Schema>,
  { channel, now, leaseMs }: Pick<Claim, 'channel' | 'now' | 'leaseMs'>,
  longestPauseMs: number,
): Promise<void> {
  const latest = now + CLOCKS_DIFFER_MS;
  await withoutLease(db, channel, now)
    // An index finds these.
    .where('next_attempt_at', '>', latest)
    .where((eb) =>
      eb.or([
        eb('next_attempt_at', '>', latest + longestPauseMs),
        eb(eb.fn.coalesce(LAST_ATTEMPT_AT, eb('next_attempt_at', '-', leaseMs)), '>', latest),
      ]),
    )
    .execute();
}

/** The last attempt of a queue that waits after it; null for a lease, and if nothing was attempted. */
const LAST_ATTEMPT_AT = sql<number | null>`(select max(attempted_at)
  from deliveries join attempts on attempts.channel = deliveries.channel and attempts.event = deliveries.event
  where queues.lease is null and deliveries.channel = queues.channel and deliveries.token = queues.token
    and deliveries.position = queues.head and attempts.attempt = queues.attempts)`;

/** Releases the claims of a process that died. Call it only in the one process that owns the database. */
export async function releaseLeases(db: Kysely<Schema>, channel: number, now: number): Promise<void> {
  await withoutLease(db, channel, now)
    .where('next_attempt_at', 'is not', null)
    .where('lease', 'is not', null)
    .execute();
}

/** Updates queues of a channel: they fall due, whoever may have claimed them. */
function withoutLease(db: Kysely<Schema>, channel: number, now: number) {
  return db
    .updateTable('queues')
    .set({ sent_to: POSSIBLY_SENT_TO, lease: null, claimed_to: null, next_attempt_at: now })
    .set({
      first_attempted_at: sql<number>`case when ${IS_LOST_FIRST} then ${now} else first_attempted_at end`,
    })
    .where('channel', '=', channel);
}

/** The former sink may have the event at the head. */
const COUNTED_ANEW = {
  attempts: 0,
  first_attempted_at: null,
  sent_to: sql<number>`case when attempts > 0 and head > sent_to then head else sent_to end`,
};

/**
 * Ends the pauses of queues after failed attempts. An attempt under way goes on. It waits for no lock, so
 * call it at the end of a transaction.
 *
 * @param queues `tokens`: undefined for all; `isNewSink`: whether attempts are counted anew.
 */
export async function endPauses(
  { engine }: Pick<Database, 'engine'>,
  db: Kysely<Schema>,
  {
    channel,
    tokens,
    isNewSink = false,
    now,
  }: { channel: number; tokens?: readonly number[]; isNewSink?: boolean; now: number },
): Promise<void> {
  await db
    .with('paused', (cte) =>
      cte
        .selectFrom('queues')
        .select('token')
        .where('channel', '=', channel)
        .where('next_attempt_at', '>', isNewSink ? 0 : now)
        .where('lease', 'is', null)
        .$if(tokens !== undefined, (query) => query.where('token', 'in', tokens ?? []))
        .$if(engine === 'postgres', (query) => query.forUpdate().skipLocked()),
    )
    .updateTable('queues')
    .set({ next_attempt_at: now, ...(isNewSink && COUNTED_ANEW) })
    .where('channel', '=', channel)
    .where('token', 'in', (eb) => eb.selectFrom('paused').select('paused.token'))
    .execute();
}

/** Begins the delivery to another sink than before: what the former one answered does not count. */
export async function changeSink(
  database: Database,
  { channel, sinkHash, now }: { channel: number; sinkHash: string; now: number },
): Promise<void> {
  await database.db.transaction().execute(async (transaction) => {
    await sql`update channels set sink_hash = ${sinkHash}, failing_since = null
      where id = ${channel}`.execute(transaction);
    await endPauses(database, transaction, { channel, isNewSink: true, now });
  });
}
