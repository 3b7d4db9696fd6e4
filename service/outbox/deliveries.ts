import { sql, type Expression, type Kysely } from 'kysely';
import { inBatches } from '../database/batches';
import type { Schema } from '../database/schema';
import { channelKeysOf } from './channels';
import { findDeliveredFeeds, registryOfFeed } from './feeds';
import {
  ANNOUNCED_BODY,
  bytesOfId,
  HIGHEST_KEY,
  idOf,
  idOfBytes,
  waitingDeliveries,
  type JudgedEvent,
} from './stored-events';

/**
 * Where an event is in a subscription:
 *
 * - waiting: it has not been delivered yet;
 * - failed: it waits for another attempt;
 * - dead: it was given up, and is a dead letter;
 * - delivered: the subscriber has it;
 * - orphaned: its block was orphaned.
 */
export const DELIVERY_STATES = ['waiting', 'failed', 'dead', 'delivered', 'orphaned'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The states of events that a subscriber has not got, and may still get. */
export const UNDELIVERED_STATES = ['waiting', 'failed', 'dead'] as const satisfies DeliveryState[];

/** A recorded attempt. Times are in epoch milliseconds. */
export interface Attempt {
  attempt: number;
  attemptedAt: number;
  status: number | null;
  error: string | null;
  milliseconds: number;
}

/** An event in one subscription that it was enqueued for. */
export interface Delivery {
  /** Key of the channel. */
  channel: number;
  /** Name of the subscription. */
  subscription: string;
  state: DeliveryState;
  /** When the event that waits is sent next. Null: behind another of its token, or it does not wait. */
  nextAttemptAt: number | null;
  /** The oldest first. */
  attempts: Attempt[];
}

/** A stored event with its deliveries. */
export interface StoredEvent extends JudgedEvent {
  /** Its key. */
  id: number;
  eventId: string;
  /** Chain id and address. */
  registry: string;
  /** Name of the feed. */
  feed: string;
  /** In decimals. Empty for events of the registry itself. */
  tokenId: string;
  blockNumber: number;
  recordedAt: number;
  trace: string | null;
  /** Whether its block was orphaned, and it has not been mined again. */
  isOrphaned: boolean;
  /** In the order of the channels. */
  deliveries: Delivery[];
}

/**
 * Whether an attempt for the head of a queue has failed. `attempts` includes the attempt under way of a
 * leased queue.
 */
const HAS_FAILED = sql<boolean>`queues.attempts > case when queues.lease is null then 0 else 1 end`;

/**
 * The event with its deliveries, once for each feed that has it: a restarted local chain may have had the
 * same event. The feed that was opened last comes first.
 */
export async function deliveriesOfEvent(db: Kysely<Schema>, eventId: string): Promise<StoredEvent[]> {
  const rows = await selectEvents(db)
    .where('events.event_id', '=', bytesOfId(eventId))
    .orderBy('feeds.opened_at', 'desc')
    .execute();
  return withDeliveries(db, rows);
}

/** Selects events of the current feed of each registry. Undefined: all. */
export interface EventsWanted {
  /** Address, or chain id and address. */
  registry?: string | undefined;
  /** In decimals. */
  tokenId?: string | undefined;
  eventId?: string | undefined;
  /** Names of subscriptions: only what was enqueued for them, and their deliveries alone. */
  own?: readonly string[] | undefined;
  /** Key of the newest one. */
  from?: number | undefined;
  limit?: number | undefined;
}

/** Lists events with their deliveries, the newest first. `next`: the key that the next page begins with. */
export async function listEvents(
  db: Kysely<Schema>,
  wanted: EventsWanted,
): Promise<{ events: StoredEvent[]; next: number | undefined }> {
  const { limit, own, registry } = wanted;
  const names = await findDeliveredFeeds(db, registry);
  const channels = own && (await channelKeysOf(db, names, own));
  const rows = await newestEvents(db, await feedKeysOf(db, names), {
    ...wanted,
    among: channels && enqueuedFor(db, channels),
    limit: limit && limit + 1,
  });
  const events = await withDeliveries(db, rows.slice(0, limit));
  return {
    events: events.map((event) => withDeliveriesOf(own, event)),
    next: limit === undefined ? undefined : rows[limit]?.id,
  };
}

/** The event with the deliveries to some subscriptions alone. Undefined: with all. */
export function withDeliveriesOf(own: readonly string[] | undefined, event: StoredEvent): StoredEvent {
  const isOwn = ({ subscription }: Delivery): boolean => own?.includes(subscription) ?? true;
  return { ...event, deliveries: event.deliveries.filter(isOwn) };
}

/** Selects the keys of the events that were enqueued for channels. */
function enqueuedFor(db: Kysely<Schema>, channels: readonly number[]): Expression<number> {
  return db.selectFrom('deliveries').select('event').where('channel', 'in', orNone(channels, 0)).$asScalar();
}

/** The position of a delivery. A page begins after it. */
export interface Place {
  event: number;
  channel: number;
}

/** Selects deliveries. Undefined: all. Those of orphaned events are left out. */
export interface DeliveriesWanted extends Omit<EventsWanted, 'from'> {
  states?: readonly Exclude<DeliveryState, 'orphaned'>[] | undefined;
  subscription?: string | undefined;
  after?: Place | undefined;
  limit: number;
}

/** A delivery with its event. */
export interface FoundDelivery {
  event: StoredEvent;
  delivery: Delivery;
}

/** Deliveries of the newest events first. `next`: the end of this page, if there may be another. */
export interface DeliveriesPage {
  deliveries: FoundDelivery[];
  next: Place | undefined;
}

/** Events whose deliveries are read in one step, and in all, for a page. */
const STEP = 100;
const MOST_EVENTS = 2_000;

/**
 * Lists deliveries of the current feed of each registry, those of the newest events first. It looks at a
 * bounded number of events, so a page may be short, or empty, although another follows.
 */
export async function listDeliveries(db: Kysely<Schema>, wanted: DeliveriesWanted): Promise<DeliveriesPage> {
  const { after = { event: HIGHEST_KEY, channel: 0 }, limit, states, own, subscription } = wanted;
  const names = await findDeliveredFeeds(db, wanted.registry);
  const named = subscription === undefined ? own : [subscription].filter((one) => own?.includes(one) ?? true);
  const channels = await channelKeysOf(db, names, named);
  const feeds = await feedKeysOf(db, names);
  const isOfFew = wanted.tokenId !== undefined || wanted.eventId !== undefined;
  const undelivered = isOfFew ? undefined : await undeliveredIn(db, channels, states, after.event);
  // Rows of others must not fill the pages of an owner.
  const among = undelivered ?? (own && enqueuedFor(db, channels));
  const shown = new Set<DeliveryState>(states ?? [...UNDELIVERED_STATES, 'delivered']);
  const found: FoundDelivery[] = [];
  let from = after.event;
  let isEnd = channels.length === 0;
  for (let seen = 0; !isEnd && seen < MOST_EVENTS && found.length <= limit; seen += STEP) {
    const rows = await newestEvents(db, feeds, { ...wanted, from, among, limit: STEP });
    for (const event of await withDeliveries(db, rows))
      for (const delivery of event.deliveries) {
        const isBefore = event.id === after.event && delivery.channel <= after.channel;
        if (!isBefore && channels.includes(delivery.channel) && shown.has(delivery.state))
          found.push({ event, delivery });
      }
    from = (rows.at(-1)?.id ?? 1) - 1;
    isEnd = rows.length < STEP;
  }
  const last = found.length > limit ? found[limit - 1] : undefined;
  const end = isEnd ? undefined : { event: from, channel: 0 };
  return {
    deliveries: found.slice(0, limit),
    next: last ? { event: last.event.id, channel: last.delivery.channel } : end,
  };
}

/** PostgreSQL refuses an empty list. */
function orNone<T>(values: readonly T[], none: T): readonly T[] {
  return values.length > 0 ? values : [none];
}

/** Attempts are counted, because PostgreSQL could hash the whole table for `exists`. */
const IS_SHOWN = sql<boolean>`(events.orphaned_at is null
  or (select count(*) from attempts where attempts.event = events.id) > 0)`;

/**
 * Reads the newest events of these feeds, from a key on, without those that only clients may have that fetch.
 * `among`: only those whose keys it selects.
 */
function newestEvents(
  db: Kysely<Schema>,
  feeds: readonly number[],
  {
    tokenId,
    eventId,
    from = HIGHEST_KEY,
    among,
    limit,
  }: EventsWanted & { among?: Expression<number> | undefined },
): Promise<EventRow[]> {
  return selectEvents(db)
    .where('feeds.id', 'in', feeds)
    .where('events.id', '<=', from)
    .where('events.audience', '<>', 'fetching')
    .where(IS_SHOWN)
    .$if(among !== undefined, (query) => query.where('events.id', 'in', among ?? []))
    .$if(tokenId !== undefined, (query) =>
      query.where('tokens.feed', 'in', feeds).where('tokens.token_id', '=', tokenId ?? ''),
    )
    .$if(eventId !== undefined, (query) => query.where('events.event_id', '=', bytesOfId(eventId ?? '')))
    .orderBy('events.id', 'desc')
    .$if(limit !== undefined, (query) => query.limit(limit ?? 0))
    .execute();
}

/** Never empty: PostgreSQL refuses an empty list. */
async function feedKeysOf(db: Kysely<Schema>, names: readonly string[]): Promise<number[]> {
  const rows = await db.selectFrom('feeds').select('id').where('feed', 'in', orNone(names, '')).execute();
  return [...orNone(rows.map(idOf), 0)];
}

/** Waiting deliveries that are read for a page. Of more, those of the newest events are sought first. */
const MOST_WAITING = 5_000;

/**
 * Selects the keys of events that channels have not got, and that may be in these states. Undefined if
 * delivered ones are wanted, or very many wait: each event is then looked at.
 */
async function undeliveredIn(
  db: Kysely<Schema>,
  channels: readonly number[],
  states: DeliveriesWanted['states'],
  from: number,
): Promise<Expression<number> | undefined> {
  if (states === undefined || states.includes('delivered') || channels.length === 0) return undefined;
  const dead = db
    .selectFrom('dead_letters')
    .select('event')
    .where('channel', 'in', channels)
    .where('event', '<=', from);
  if (states.every((state) => state === 'dead')) return dead.$asScalar();
  const waiting = waitingDeliveries(db)
    .select('deliveries.event')
    .where('queues.channel', 'in', channels)
    // Lets SQLite use the index of queues that are not empty.
    .where('queues.next_attempt_at', '>=', 0)
    .$if(!states.includes('waiting'), (query) =>
      query.where(HAS_FAILED).whereRef('deliveries.position', '=', 'queues.head'),
    );
  const few = await waiting.limit(MOST_WAITING + 1).execute();
  if (few.length > MOST_WAITING) return undefined;
  return (states.includes('dead') ? waiting.unionAll(dead) : waiting).$asScalar();
}

/** A row of an event. */
type EventRow = Omit<StoredEvent, 'eventId' | 'registry' | 'isOrphaned' | 'deliveries'> & {
  token: number;
  feedId: number;
  event_id: Uint8Array | ArrayBuffer;
  orphaned_at: number | null;
};

function selectEvents(db: Kysely<Schema>) {
  return (
    db
      .selectFrom('events')
      .innerJoin('tokens', 'tokens.id', 'events.token')
      // The sum keeps SQLite from reading all events of the feeds, and sorting them.
      .innerJoin('feeds', (join) => join.on((eb) => eb('feeds.id', '=', eb('events.feed', '+', 0))))
      .select(['events.id', 'events.token', 'events.event_id', 'events.type', 'events.orphaned_at'])
      .select(['events.block_number as blockNumber', 'tokens.token_id as tokenId', 'events.body'])
      .select(['feeds.id as feedId', 'feeds.feed', 'events.recorded_at as recordedAt', 'events.trace'])
      .select(ANNOUNCED_BODY.as('announced'))
  );
}

/** The events of these rows with their deliveries, in the same order. */
async function withDeliveries(db: Kysely<Schema>, rows: readonly EventRow[]): Promise<StoredEvent[]> {
  const byEvent = new Map(rows.map(({ id }): [number, Delivery[]] => [id, []]));
  for (const { event, ...delivery } of await inBatches(rows, (some) => deliveriesOf(db, some)))
    byEvent.get(event)?.push(delivery);
  return rows.map(({ event_id, orphaned_at, ...row }) => ({
    ...row,
    eventId: idOfBytes(event_id),
    registry: registryOfFeed(row.feed),
    isOrphaned: orphaned_at !== null,
    deliveries: byEvent.get(row.id) ?? [],
  }));
}

/** The number of statements does not depend on the number of channels. */
async function deliveriesOf(
  db: Kysely<Schema>,
  rows: readonly EventRow[],
): Promise<(Delivery & { event: number })[]> {
  const events = rows.map(idOf);
  const waiting = await waitingDeliveries(db)
    .innerJoin('channels', 'channels.id', 'queues.channel')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select(['deliveries.event', 'deliveries.channel', 'deliveries.position', 'queues.head'])
    .select(['subscriptions.name as subscription', 'queues.next_attempt_at', HAS_FAILED.as('hasFailed')])
    .where('channels.feed', 'in', [...new Set(rows.map(({ feedId }) => feedId))])
    .where('queues.token', 'in', [...new Set(rows.map(({ token }) => token))])
    .where('deliveries.event', 'in', events)
    .execute();
  // Read after the queues: an event that left its queue meanwhile is found here.
  const attempts = await db
    .selectFrom('attempts')
    .innerJoin('channels', 'channels.id', 'attempts.channel')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .leftJoin('dead_letters', (join) =>
      join
        .onRef('dead_letters.channel', '=', 'attempts.channel')
        .onRef('dead_letters.event', '=', 'attempts.event'),
    )
    .select(['attempts.event', 'attempts.channel', 'subscriptions.name as subscription'])
    .select(['attempts.attempt', 'attempts.attempted_at as attemptedAt', 'attempts.status'])
    .select(['attempts.error', 'attempts.milliseconds', 'dead_letters.died_at'])
    .where('attempts.event', 'in', events)
    .orderBy('attempts.attempted_at')
    .orderBy('attempts.attempt')
    .execute();
  const orphaned = new Set(rows.flatMap(({ id, orphaned_at }) => (orphaned_at === null ? [] : id)));
  const found = new Map<string, Delivery & { event: number }>();
  for (const { event, channel, subscription, position, head, next_attempt_at, hasFailed } of waiting) {
    const isNext = position === head;
    const state = isNext && hasFailed ? 'failed' : 'waiting';
    const nextAttemptAt = isNext ? next_attempt_at : null;
    found.set(`${event}/${channel}`, { event, channel, subscription, state, nextAttemptAt, attempts: [] });
  }
  for (const { event, channel, subscription, died_at, ...attempt } of attempts) {
    const key = `${event}/${channel}`;
    const ended = { state: orphaned.has(event) ? 'orphaned' : 'delivered', nextAttemptAt: null } as const;
    const delivery = found.get(key) ?? { event, channel, subscription, ...ended, attempts: [] };
    if (died_at !== null) delivery.state = 'dead';
    delivery.attempts.push(attempt);
    found.set(key, delivery);
  }
  return [...found.values()].sort((left, right) => left.channel - right.channel);
}
