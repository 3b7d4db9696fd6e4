import { sql, type Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { channelKeysOf } from '../outbox/channels';
import type { Selection } from '../outbox/redeliver';
import { deadEvents, namesOf, queuedEvents } from '../outbox/undelivered';

/** The events of a redelivery. */
export type Redelivery = Selection;

/** `failed`: at least one attempt failed, and another follows. */
export type DeliveryState = 'waiting' | 'failed' | 'dead';

/** An event that a subscriber has not got. Times are in epoch milliseconds. */
export interface UndeliveredEvent {
  id: string;
  type: string;
  registry: string;
  tokenId: string;
  state: DeliveryState;
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
  state?: DeliveryState | undefined;
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

/**
 * Whether an attempt for the head of a queue has failed. `attempts` includes the attempt under way of a
 * leased queue.
 */
const hasFailed = sql<boolean>`queues.attempts > case when queues.lease is null then 0 else 1 end`;

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
      hasFailed.as('hasFailed'),
    ])
    .$if(state === 'failed', (query) =>
      query.where(hasFailed).whereRef('deliveries.position', '=', 'queues.head'),
    )
    .$if(state === 'waiting', (query) =>
      query.where((eb) => eb.or([eb.not(hasFailed), eb('deliveries.position', '>', eb.ref('queues.head'))])),
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
  return Promise.all(
    rows.map(async ({ event, head, token, position, type, attempts, nextAttemptAt, ...row }) => {
      const isHead = position === head;
      const isFailed = isHead && Boolean(row.hasFailed);
      const last = isFailed ? await lastAttemptOf(db, channel, event) : undefined;
      const { eventId: id, ...names } = namesOf(row);
      return {
        place: { channel, token, position },
        event: {
          id,
          type,
          ...names,
          state: isFailed ? ('failed' as const) : ('waiting' as const),
          attempts: isHead ? attempts : 0,
          nextAttemptAt: isHead ? nextAttemptAt : null,
          status: last?.status ?? null,
          error: last?.error ?? null,
        },
      };
    }),
  );
}

async function lastAttemptOf(
  db: Kysely<Schema>,
  channel: number,
  event: number,
): Promise<{ status: number | null; error: string | null } | undefined> {
  return db
    .selectFrom('attempts')
    .select(['status', 'error'])
    .where('event', '=', event)
    .where('channel', '=', channel)
    .orderBy('attempted_at', 'desc')
    .orderBy('attempt', 'desc')
    .limit(1)
    .executeTakeFirst();
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
