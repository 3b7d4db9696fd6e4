import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { channelKeysOf } from './channels';
import { aboutOf } from './cloud-event';
import { registryOfFeed } from './find-feeds';
import { bytesOfId, idOfBytes, isEventId } from './stored-ids';

/** An event that was given up. Times are in epoch milliseconds. */
export interface DeadLetter {
  registry: string;
  subscription: string;
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
  subscription: string;
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
  subscription: string;
  eventId: string;
  state: 'waiting' | 'delivered' | 'dead' | 'orphaned';
  body: string;
  attempts: Attempt[];
}

/** The dead letters of the given feeds, oldest first. */
export async function listDeadLetters(db: Kysely<Schema>, feeds: string[]): Promise<DeadLetter[]> {
  const channels = await channelKeysOf(db, feeds);
  if (channels.length === 0) return [];
  const rows = await db
    .selectFrom('dead_letters')
    .innerJoin('events', 'events.id', 'dead_letters.event')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .innerJoin('channels', 'channels.id', 'dead_letters.channel')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select([
      'feeds.feed',
      'subscriptions.name as subscription',
      'events.event_id as eventId',
      'events.type',
      'tokens.token_id as tokenId',
      'dead_letters.died_at as diedAt',
      'dead_letters.attempts',
      'dead_letters.status',
      'dead_letters.error',
      'events.body',
    ])
    .where('dead_letters.channel', 'in', channels)
    .orderBy('dead_letters.died_at')
    .execute();
  return rows.map(({ feed, eventId, tokenId, body, ...row }) => ({
    registry: registryOfFeed(feed),
    ...row,
    eventId: idOfBytes(eventId),
    tokenId: shownTokenId(tokenId),
    transactionHash: aboutOf(body).transactionHash,
    body,
  }));
}

/** The orphans of the given feeds, oldest first. */
export async function listOrphans(db: Kysely<Schema>, feeds: string[]): Promise<Orphan[]> {
  if (feeds.length === 0) return [];
  const rows = await db
    .selectFrom('orphans')
    .innerJoin('feeds', 'feeds.id', 'orphans.feed')
    .select([
      'feeds.feed',
      'event_id as eventId',
      'outcome',
      'block_number as blockNumber',
      'block_hash as blockHash',
      'orphaned_at as orphanedAt',
      'mined_again_in as minedAgainIn',
      'body',
    ])
    .where('feeds.feed', 'in', feeds)
    .orderBy('orphaned_at')
    .orderBy('block_number')
    .execute();
  return rows.map(({ feed, eventId, ...row }) => ({
    registry: registryOfFeed(feed),
    eventId: idOfBytes(eventId),
    ...row,
  }));
}

/** The head of each queue that is not empty, in the order in which they fall due. */
export async function listWaiting(
  db: Kysely<Schema>,
  feeds: string[],
  limit: number,
): Promise<WaitingDelivery[]> {
  const channels = await channelKeysOf(db, feeds);
  if (channels.length === 0) return [];
  const rows = await db
    .selectFrom('queues')
    .innerJoin('channels', 'channels.id', 'queues.channel')
    .innerJoin('feeds', 'feeds.id', 'channels.feed')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .innerJoin('deliveries', (join) =>
      join
        .onRef('deliveries.channel', '=', 'queues.channel')
        .onRef('deliveries.token', '=', 'queues.token')
        .onRef('deliveries.position', '=', 'queues.head'),
    )
    .innerJoin('events', 'events.id', 'deliveries.event')
    .innerJoin('tokens', 'tokens.id', 'queues.token')
    .select((eb) => [
      'feeds.feed',
      'subscriptions.name as subscription',
      'events.event_id as eventId',
      'events.type',
      'tokens.token_id as tokenId',
      eb(eb('tail', '-', eb.ref('head')), '+', 1).as('waiting'),
      'queues.attempts',
      'queues.next_attempt_at as nextAttemptAt',
    ])
    .where('queues.channel', 'in', channels)
    .where('queues.next_attempt_at', 'is not', null)
    .orderBy('queues.next_attempt_at')
    .limit(limit)
    .execute();
  return rows.map(({ feed, eventId, tokenId, waiting, ...row }) => ({
    registry: registryOfFeed(feed),
    ...row,
    eventId: idOfBytes(eventId),
    tokenId: shownTokenId(tokenId),
    waiting: Number(waiting),
  }));
}

/** Token ids as events carry them: events of the registry itself carry 0. */
function shownTokenId(tokenId: string): string {
  return tokenId === '' ? '0' : tokenId;
}

/** The event's history, once for each channel that it was enqueued for. */
export async function historyOf(db: Kysely<Schema>, eventId: string): Promise<EventHistory[]> {
  if (!isEventId(eventId)) return [];
  const rows = await db
    .selectFrom('events')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .innerJoin('channels', 'channels.feed', 'feeds.id')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select([
      'events.id',
      'events.token',
      'events.body',
      'events.orphaned_at',
      'feeds.feed',
      'channels.id as channel',
      'subscriptions.name as subscription',
    ])
    .where('events.event_id', '=', bytesOfId(eventId))
    .orderBy('channels.id')
    .execute();
  const histories = await Promise.all(
    rows.map(async ({ id, token, body, orphaned_at, feed, channel, subscription }) => {
      const attempts = await db
        .selectFrom('attempts')
        .select(['attempt', 'attempted_at as attemptedAt', 'status', 'error', 'milliseconds'])
        .where('event', '=', id)
        .where('channel', '=', channel)
        .orderBy('attempted_at')
        .execute();
      const dead = await db
        .selectFrom('dead_letters')
        .select('event')
        .where('channel', '=', channel)
        .where('event', '=', id)
        .executeTakeFirst();
      const waiting = await waitingAmong(db, channel, [{ id, token }]);
      if (attempts.length === 0 && waiting.size === 0 && orphaned_at === null) return [];
      const state: EventHistory['state'] = dead
        ? 'dead'
        : waiting.size > 0
          ? 'waiting'
          : orphaned_at !== null
            ? 'orphaned'
            : 'delivered';
      return { registry: registryOfFeed(feed), subscription, eventId, state, body, attempts };
    }),
  );
  return histories.flat();
}

/** Those of the events that wait in a channel. */
export async function waitingAmong(
  db: Kysely<Schema>,
  channel: number,
  events: readonly { id: number; token: number }[],
): Promise<ReadonlySet<number>> {
  if (events.length === 0) return new Set();
  const rows = await db
    .selectFrom('deliveries')
    .innerJoin('queues', (join) =>
      join
        .onRef('queues.channel', '=', 'deliveries.channel')
        .onRef('queues.token', '=', 'deliveries.token')
        .onRef('deliveries.position', '>=', 'queues.head'),
    )
    .select('deliveries.event')
    .where('deliveries.channel', '=', channel)
    .where('deliveries.token', 'in', [...new Set(events.map(({ token }) => token))])
    .where(
      'deliveries.event',
      'in',
      events.map(({ id }) => id),
    )
    .execute();
  return new Set(rows.map(({ event }) => event));
}
