import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { aboutOf } from '../events/cloud-event';
import { channelKeysOf } from './channels';
import { registryOfFeed } from './feeds';
import { idOfBytes, waitingDeliveries } from './stored-events';

/** An event that was given up, with its body and its last attempt. Times are in epoch milliseconds. */
export type DeadLetter = Awaited<ReturnType<typeof listDeadLetters>>[number];

/** An event that was delivered, or may have been, before its block was orphaned. */
export type Orphan = Awaited<ReturnType<typeof listOrphans>>[number];

/** The head of a token queue that is not empty. `waiting`: the events in the queue, including this one. */
export type WaitingDelivery = Awaited<ReturnType<typeof listWaiting>>[number];

/** The dead letters of the given feeds, oldest first. */
export async function listDeadLetters(db: Kysely<Schema>, feeds: string[]) {
  const channels = await channelKeysOf(db, feeds);
  if (channels.length === 0) return [];
  const rows = await db
    .selectFrom('dead_letters')
    .innerJoin('events', 'events.id', 'dead_letters.event')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .innerJoin('channels', 'channels.id', 'dead_letters.channel')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select(['feeds.feed', 'subscriptions.name as subscription', 'events.event_id as eventId'])
    .select(['events.type', 'tokens.token_id as tokenId', 'dead_letters.died_at as diedAt'])
    .select(['dead_letters.attempts', 'dead_letters.status', 'dead_letters.error', 'events.body'])
    .where('dead_letters.channel', 'in', channels)
    .orderBy('dead_letters.died_at')
    .execute();
  return rows.map(({ feed, subscription, eventId, type, tokenId, ...row }) => ({
    registry: registryOfFeed(feed),
    subscription,
    eventId: idOfBytes(eventId),
    type,
    tokenId: shownId(tokenId),
    transactionHash: aboutOf(row.body).transactionHash,
    ...row,
  }));
}

/** The orphans of the given feeds, oldest first. */
export async function listOrphans(db: Kysely<Schema>, feeds: string[]) {
  if (feeds.length === 0) return [];
  const rows = await db
    .selectFrom('orphans')
    .innerJoin('feeds', 'feeds.id', 'orphans.feed')
    .select(['feeds.feed', 'event_id as eventId', 'outcome', 'block_number as blockNumber', 'body'])
    .select(['block_hash as blockHash', 'orphaned_at as orphanedAt', 'mined_again_in as minedAgainIn'])
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
export async function listWaiting(db: Kysely<Schema>, feeds: string[], limit: number) {
  const channels = await channelKeysOf(db, feeds);
  if (channels.length === 0) return [];
  const rows = await waitingDeliveries(db)
    .innerJoin('events', 'events.id', 'deliveries.event')
    .innerJoin('tokens', 'tokens.id', 'queues.token')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .innerJoin('channels', 'channels.id', 'queues.channel')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select(['feeds.feed', 'subscriptions.name as subscription', 'events.event_id as eventId'])
    .select(['events.type', 'tokens.token_id as tokenId', 'queues.attempts'])
    .select((eb) => eb(eb('tail', '-', eb.ref('head')), '+', 1).as('waiting'))
    .select('queues.next_attempt_at as nextAttemptAt')
    .where('queues.channel', 'in', channels)
    .where('queues.next_attempt_at', 'is not', null)
    .whereRef('deliveries.position', '=', 'queues.head')
    .orderBy('queues.next_attempt_at')
    .limit(limit)
    .execute();
  return rows.map(({ feed, eventId, tokenId, waiting, ...row }) => ({
    registry: registryOfFeed(feed),
    eventId: idOfBytes(eventId),
    tokenId: shownId(tokenId),
    waiting: Number(waiting),
    ...row,
  }));
}

/** The id of a token in the form of its CloudEvents. Events of the registry itself carry token id 0. */
export function shownId(tokenId: string): string {
  return tokenId === '' ? '0' : tokenId;
}
