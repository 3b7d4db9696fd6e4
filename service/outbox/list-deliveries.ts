import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { selectHeads } from './claim-deliveries';
import { registryOfFeed } from './find-feeds';

/** An event that was given up. Times are in epoch milliseconds. */
export interface DeadLetter {
  registry: string;
  eventId: string;
  type: string;
  tokenId: string;
  transactionHash: string;
  diedAt: number;
  attempts: number;
  /** Status and error of the last attempt. */
  status: number | null;
  error: string | null;
  /** The body that was sent. */
  body: string;
}

/** An event that was delivered, or may have been, before its block was orphaned. */
export interface Orphan {
  registry: string;
  eventId: string;
  outcome: 'delivered' | 'attempted';
  blockNumber: number;
  blockHash: string;
  orphanedAt: number;
  minedAgainIn: number | null;
  body: string;
}

/** The head of a token queue that is not empty. */
export interface WaitingDelivery {
  registry: string;
  eventId: string;
  type: string;
  tokenId: string;
  /** Events that wait in this queue, including this one. */
  waiting: number;
  attempts: number;
  nextAttemptAt: number | null;
}

/** A recorded attempt. */
export interface Attempt {
  attempt: number;
  attemptedAt: number;
  status: number | null;
  error: string | null;
  milliseconds: number;
}

/** An event with its state and its attempts. */
export interface EventHistory {
  registry: string;
  eventId: string;
  state: 'waiting' | 'delivered' | 'dead' | 'orphaned';
  body: string;
  attempts: Attempt[];
}

/** The dead letters of the given feeds, oldest first. */
export async function listDeadLetters(db: Kysely<Schema>, feeds: string[]): Promise<DeadLetter[]> {
  if (feeds.length === 0) return [];
  const rows = await db
    .selectFrom('dead_letters')
    .innerJoin('events', (join) =>
      join
        .onRef('events.feed', '=', 'dead_letters.feed')
        .onRef('events.event_id', '=', 'dead_letters.event_id'),
    )
    .select([
      'events.feed',
      'events.event_id as eventId',
      'events.type',
      'events.token_id as tokenId',
      'events.transaction_hash as transactionHash',
      'dead_letters.died_at as diedAt',
      'dead_letters.attempts',
      'dead_letters.status',
      'dead_letters.error',
      'events.body',
    ])
    .where('dead_letters.feed', 'in', feeds)
    .orderBy('dead_letters.died_at')
    .execute();
  return rows.map(({ feed, ...row }) => ({ registry: registryOfFeed(feed), ...row }));
}

/** The orphans of the given feeds, oldest first. */
export async function listOrphans(db: Kysely<Schema>, feeds: string[]): Promise<Orphan[]> {
  if (feeds.length === 0) return [];
  const rows = await db
    .selectFrom('orphans')
    .select([
      'feed',
      'event_id as eventId',
      'outcome',
      'block_number as blockNumber',
      'block_hash as blockHash',
      'orphaned_at as orphanedAt',
      'mined_again_in as minedAgainIn',
      'body',
    ])
    .where('feed', 'in', feeds)
    .orderBy('orphaned_at')
    .orderBy('block_number')
    .execute();
  return rows.map(({ feed, ...row }) => ({ registry: registryOfFeed(feed), ...row }));
}

/** The head of each queue that is not empty, in the order in which they fall due. */
export async function listWaiting(
  db: Kysely<Schema>,
  feeds: string[],
  limit: number,
): Promise<WaitingDelivery[]> {
  if (feeds.length === 0) return [];
  const rows = await selectHeads(db)
    .select((eb) => [
      'events.feed',
      'events.event_id as eventId',
      'events.type',
      'events.token_id as tokenId',
      eb(eb('tail', '-', eb.ref('head')), '+', 1).as('waiting'),
      'streams.attempts',
      'streams.next_attempt_at as nextAttemptAt',
    ])
    .where('streams.feed', 'in', feeds)
    .where('streams.next_attempt_at', 'is not', null)
    .orderBy('streams.next_attempt_at')
    .limit(limit)
    .execute();
  return rows.map(({ feed, waiting, ...row }) => ({
    registry: registryOfFeed(feed),
    ...row,
    waiting: Number(waiting),
  }));
}

/** The event's history, once for each feed that contains it. */
export async function historyOf(db: Kysely<Schema>, eventId: string): Promise<EventHistory[]> {
  const events = await db.selectFrom('events').selectAll().where('event_id', '=', eventId).execute();
  return Promise.all(
    events.map(async ({ feed, body, orphaned_at }) => {
      const attempts = await db
        .selectFrom('attempts')
        .select(['attempt', 'attempted_at as attemptedAt', 'status', 'error', 'milliseconds'])
        .where('feed', '=', feed)
        .where('event_id', '=', eventId)
        .orderBy('attempted_at')
        .execute();
      const dead = await db
        .selectFrom('dead_letters')
        .select('event_id')
        .where('feed', '=', feed)
        .where('event_id', '=', eventId)
        .executeTakeFirst();
      const waiting = await waitingAmong(db, feed, [eventId]);
      const state = dead
        ? 'dead'
        : waiting.size > 0
          ? 'waiting'
          : orphaned_at !== null
            ? 'orphaned'
            : 'delivered';
      return { registry: registryOfFeed(feed), eventId, state, body, attempts };
    }),
  );
}

/** The ids of those events that are waiting to be delivered. */
export async function waitingAmong(
  db: Kysely<Schema>,
  feed: string,
  eventIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('deliveries')
    .innerJoin('streams', 'streams.stream', 'deliveries.stream')
    .select('deliveries.event_id')
    .where('deliveries.feed', '=', feed)
    .where('deliveries.event_id', 'in', eventIds)
    .whereRef('deliveries.position', '>=', 'streams.head')
    .whereRef('deliveries.position', '<=', 'streams.tail')
    .execute();
  return new Set(rows.map(({ event_id }) => event_id));
}
