import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { channelKeysOf } from './channels';
import { aboutOf } from '../events/cloud-event';
import { registryOfFeed } from './find-feeds';
import { idOfBytes } from './stored-ids';
import { deadEvents, namesOf, queuedEvents } from './undelivered';

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

/** The dead letters of the given feeds, oldest first. */
export async function listDeadLetters(db: Kysely<Schema>, feeds: string[]): Promise<DeadLetter[]> {
  const channels = await channelKeysOf(db, feeds);
  if (channels.length === 0) return [];
  const rows = await deadEvents(db, channels)
    .innerJoin('channels', 'channels.id', 'dead_letters.channel')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select(['subscriptions.name as subscription', 'dead_letters.died_at as diedAt', 'events.body'])
    .orderBy('dead_letters.died_at')
    .execute();
  return rows.map(({ feed, event_id, token_id, body, subscription, type, ...row }) => ({
    ...namesOf({ feed, event_id, token_id }),
    subscription,
    type,
    transactionHash: aboutOf(body).transactionHash,
    ...row,
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
  const rows = await queuedEvents(db, channels)
    .innerJoin('channels', 'channels.id', 'queues.channel')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select('subscriptions.name as subscription')
    .select((eb) => eb(eb('tail', '-', eb.ref('head')), '+', 1).as('waiting'))
    .whereRef('deliveries.position', '=', 'queues.head')
    .orderBy('queues.next_attempt_at')
    .limit(limit)
    .execute();
  return rows.map(({ feed, event_id, token_id, waiting, ...row }) => ({
    ...namesOf({ feed, event_id, token_id }),
    ...row,
    waiting: Number(waiting),
  }));
}
