import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { aboutOf } from '../events/cloud-event';
import { channelKeysOf } from './channels';
import { HAS_FAILED, type DeliveryState } from './deliveries';
import { registryOfFeed } from './find-feeds';
import { idOfBytes } from './stored-ids';

/** Where an event that a subscriber has not got may be. */
export type UndeliveredState = Extract<DeliveryState, 'waiting' | 'failed' | 'dead'>;

/** An event that a subscriber has not got. Times are in epoch milliseconds. */
export interface UndeliveredEvent {
  id: string;
  type: string;
  registry: string;
  tokenId: string;
  state: UndeliveredState;
  /** Attempts begun. */
  attempts: number;
  /** Null for a dead letter, and for an event behind another of its token. */
  nextAttemptAt: number | null;
  /** Status and error of the last attempt. */
  status: number | null;
  error: string | null;
}

/** The position of a delivery. A page begins after it. */
export interface Place {
  channel: number;
  token: number;
  position: number;
}

/** Selects deliveries. */
export interface DeliveriesQuery {
  subscription: string;
  state?: UndeliveredState | undefined;
  /** In decimals. */
  tokenId?: string | undefined;
  after?: Place | undefined;
  limit: number;
}

/** A page, and the position of its last entry if there may be more. */
export interface DeliveriesPage {
  deliveries: UndeliveredEvent[];
  next: Place | undefined;
}

/**
 * Lists undelivered events of a subscription by channel, token and position. A token's dead letters come
 * before the events that wait.
 */
export async function listChannelDeliveries(
  db: Kysely<Schema>,
  feeds: readonly string[],
  query: DeliveriesQuery,
): Promise<DeliveriesPage> {
  const all = await channelKeysOf(db, feeds, query.subscription);
  const channels = all.filter((channel) => channel >= (query.after?.channel ?? 0));
  const listed: Listed[] = [];
  for (const channel of channels) {
    if (listed.length > query.limit) break;
    const after = query.after?.channel === channel ? query.after : undefined;
    const limit = query.limit + 1 - listed.length;
    const waiting = query.state === 'dead' ? [] : await waitingIn(db, channel, { ...query, after, limit });
    const dead =
      query.state === undefined || query.state === 'dead'
        ? await deadIn(db, channel, { ...query, after, limit })
        : [];
    const inOrder = [...dead, ...waiting].sort(
      ({ place: left }, { place: right }) => left.token - right.token || left.position - right.position,
    );
    listed.push(...inOrder.slice(0, limit));
  }
  const page = listed.slice(0, query.limit);
  return {
    deliveries: page.map(({ event }) => event),
    next: listed.length > query.limit ? page.at(-1)?.place : undefined,
  };
}

/** An event and its position in the list. */
interface Listed {
  place: Place;
  event: UndeliveredEvent;
}

type ChannelQuery = Pick<DeliveriesQuery, 'state' | 'tokenId' | 'after' | 'limit'>;

async function waitingIn(
  db: Kysely<Schema>,
  channel: number,
  { state, tokenId, after, limit }: ChannelQuery,
): Promise<Listed[]> {
  const rows = await queuedEvents(db, [channel])
    .select([
      'events.id as event',
      'queues.token',
      'queues.head',
      'deliveries.position',
      HAS_FAILED.as('hasFailed'),
    ])
    .$if(state === 'failed', (query) =>
      query.where(HAS_FAILED).whereRef('deliveries.position', '=', 'queues.head'),
    )
    .$if(state === 'waiting', (query) =>
      query.where((eb) => eb.or([eb.not(HAS_FAILED), eb('deliveries.position', '>', eb.ref('queues.head'))])),
    )
    .$if(tokenId !== undefined, (query) => query.where('tokens.token_id', '=', tokenId ?? ''))
    .$if(after !== undefined, (query) =>
      query.where((eb) =>
        eb.or([
          eb('queues.token', '>', after?.token ?? 0),
          eb.and([
            eb('queues.token', '=', after?.token ?? 0),
            eb('deliveries.position', '>', after?.position ?? 0),
          ]),
        ]),
      ),
    )
    .orderBy('queues.token')
    .orderBy('deliveries.position')
    .limit(limit)
    .execute();
  const isFailed = (row: (typeof rows)[number]): boolean =>
    row.position === row.head && Boolean(row.hasFailed);
  const last = await lastAttempts(
    db,
    channel,
    rows.filter(isFailed).map(({ event }) => event),
  );
  return rows.map((row) => {
    const { event, token, position, type, attempts, nextAttemptAt } = row;
    const isHead = position === row.head;
    const { eventId: id, ...names } = namesOf(row);
    return {
      place: { channel, token, position },
      event: {
        id,
        type,
        ...names,
        state: isFailed(row) ? 'failed' : 'waiting',
        attempts: isHead ? attempts : 0,
        nextAttemptAt: isHead ? nextAttemptAt : null,
        status: last.get(event)?.status ?? null,
        error: last.get(event)?.error ?? null,
      },
    };
  });
}

/** The last attempt of each of these events in a channel. */
async function lastAttempts(
  db: Kysely<Schema>,
  channel: number,
  events: readonly number[],
): Promise<ReadonlyMap<number, { status: number | null; error: string | null }>> {
  if (events.length === 0) return new Map();
  const rows = await db
    .selectFrom('attempts')
    .select(['event', 'status', 'error'])
    .where('event', 'in', events)
    .where('channel', '=', channel)
    .orderBy('attempted_at')
    .orderBy('attempt')
    .execute();
  return new Map(rows.map(({ event, ...attempt }) => [event, attempt]));
}

async function deadIn(
  db: Kysely<Schema>,
  channel: number,
  { tokenId, after, limit }: ChannelQuery,
): Promise<Listed[]> {
  const rows = await deadEvents(db, [channel])
    .select(['events.token', 'dead_letters.event'])
    .$if(tokenId !== undefined, (query) => query.where('tokens.token_id', '=', tokenId ?? ''))
    .$if(after !== undefined, (query) =>
      query.where((eb) =>
        eb.or([
          eb('events.token', '>', after?.token ?? 0),
          // A token's dead letters come before its waiting events, so none follow a waiting event.
          ...(after !== undefined && after.position < 0
            ? [
                eb.and([
                  eb('events.token', '=', after.token),
                  eb('dead_letters.event', '>', after.position - DEAD_PLACES),
                ]),
              ]
            : []),
        ]),
      ),
    )
    .orderBy('events.token')
    .orderBy('dead_letters.event')
    .limit(limit)
    .execute();
  return rows.map(({ event, token, type, attempts, status, error, ...row }) => {
    const { eventId: id, ...names } = namesOf(row);
    return {
      place: { channel, token, position: placeOfDead(event) },
      event: { id, type, ...names, state: 'dead', attempts, nextAttemptAt: null, status, error },
    };
  });
}

/** Dead letters have left the queue. Negative positions in the order of events sort them first. */
const DEAD_PLACES = Number.MIN_SAFE_INTEGER;

function placeOfDead(event: number): number {
  return DEAD_PLACES + event;
}

/** PostgreSQL's largest `integer`: the type of the keys of channels, tokens and events. */
const HIGHEST_KEY = 2 ** 31 - 1;

/** Whether a page may end there. PostgreSQL refuses larger numbers. */
export function isPlace({ channel, token, position }: Place): boolean {
  const isDead = position >= DEAD_PLACES && position <= DEAD_PLACES + HIGHEST_KEY;
  const isWaiting = position >= 0 && position <= Number.MAX_SAFE_INTEGER;
  return channel <= HIGHEST_KEY && token <= HIGHEST_KEY && (isDead || isWaiting);
}

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

/** Selects the events that wait in channels, with their queues. */
function queuedEvents(db: Kysely<Schema>, channels: readonly number[]) {
  return db
    .selectFrom('queues')
    .innerJoin('deliveries', (join) =>
      join
        .onRef('deliveries.channel', '=', 'queues.channel')
        .onRef('deliveries.token', '=', 'queues.token')
        .onRef('deliveries.position', '>=', 'queues.head'),
    )
    .innerJoin('events', 'events.id', 'deliveries.event')
    .innerJoin('tokens', 'tokens.id', 'queues.token')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .select([
      'feeds.feed',
      'events.event_id',
      'events.type',
      'tokens.token_id',
      'queues.attempts',
      'queues.next_attempt_at as nextAttemptAt',
    ])
    .where('queues.channel', 'in', channels)
    .where('queues.next_attempt_at', 'is not', null);
}

/** Selects the dead letters of channels. */
function deadEvents(db: Kysely<Schema>, channels: readonly number[]) {
  return db
    .selectFrom('dead_letters')
    .innerJoin('events', 'events.id', 'dead_letters.event')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .select([
      'feeds.feed',
      'events.event_id',
      'events.type',
      'tokens.token_id',
      'dead_letters.attempts',
      'dead_letters.status',
      'dead_letters.error',
    ])
    .where('dead_letters.channel', 'in', channels);
}

/** The stored names of an event in the form of its CloudEvent. */
function namesOf(row: { feed: string; event_id: Uint8Array | ArrayBuffer; token_id: string }): {
  registry: string;
  eventId: string;
  tokenId: string;
} {
  return {
    registry: registryOfFeed(row.feed),
    eventId: idOfBytes(row.event_id),
    // Events of the registry itself carry token id 0.
    tokenId: row.token_id === '' ? '0' : row.token_id,
  };
}
