import { sql, type Kysely } from 'kysely';
import { inBatches } from '../database/batches';
import type { Schema } from '../database/schema';
import { channelKeysOf, joinedChannels } from './channels';
import { findDeliveredFeeds, registryOfFeed } from './feeds';
import { bytesOfId, HIGHEST_KEY, idOfBytes, isEventId, idOf, waitingDeliveries } from './stored-events';

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

/** A stored event. */
export interface StoredEvent {
  /** Its key. */
  id: number;
  eventId: string;
  type: string;
  /** Chain id and address. */
  registry: string;
  /** Name of the feed. */
  feed: string;
  /** In decimals. Empty for events of the registry itself. */
  tokenId: string;
  blockNumber: number;
  /** Whether its block was orphaned, and it has not been mined again. */
  isOrphaned: boolean;
}

/** An event with its deliveries, in the order of the channels. */
export interface DeliveredEvent extends StoredEvent {
  /** The bytes that are sent, as text. */
  body: string;
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
export async function deliveriesOfEvent(db: Kysely<Schema>, eventId: string): Promise<DeliveredEvent[]> {
  if (!isEventId(eventId)) return [];
  const rows = await selectEvents(db)
    .select('events.body')
    .where('events.event_id', '=', bytesOfId(eventId))
    .orderBy('feeds.opened_at', 'desc')
    .execute();
  return withDeliveries(db, rows);
}

/** Selects events of the current feed of each registry. Undefined: all. */
interface EventsWanted {
  /** Address, or chain id and address. */
  registry?: string | undefined;
  /** In decimals. */
  tokenId?: string | undefined;
  eventId?: string | undefined;
  /** Key of the newest one. */
  from?: number | undefined;
}

/** A page of events, the newest first. `next`: the key that the next page is listed from. */
interface EventsPage {
  events: DeliveredEvent[];
  next: number | undefined;
}

/** Lists events with their deliveries, the newest first; all of them if there is no limit. */
export async function listEvents(
  db: Kysely<Schema>,
  { limit, ...wanted }: EventsWanted & { limit?: number | undefined },
): Promise<EventsPage> {
  const feeds = await feedsFor(db, wanted);
  const rows = await newestEvents(db, feeds, { ...wanted, limit: limit && limit + 1 })
    .select('events.body')
    .execute();
  return {
    events: await withDeliveries(db, rows.slice(0, limit)),
    next: limit === undefined ? undefined : rows[limit]?.id,
  };
}

/** The position of a delivery. A page begins after it. */
export interface Place {
  event: number;
  channel: number;
}

/** Whether a page may end there. PostgreSQL refuses larger numbers. */
export function isPlace({ event, channel }: Place): boolean {
  return event <= HIGHEST_KEY && channel <= HIGHEST_KEY;
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
  const { after = { event: HIGHEST_KEY, channel: 0 }, limit, states } = wanted;
  const channels = await channelKeysOf(
    db,
    await findDeliveredFeeds(db, wanted.registry),
    wanted.subscription,
  );
  const feeds = await feedsFor(db, wanted);
  const isOfFew = wanted.tokenId !== undefined || wanted.eventId !== undefined;
  const candidates = isOfFew ? undefined : await undeliveredIn(db, channels, { after, limit, states });
  const own = new Set(channels);
  const shown = new Set<DeliveryState>(states ?? [...UNDELIVERED_STATES, 'delivered']);
  const found: FoundDelivery[] = [];
  let from = after.event;
  let isEnd = channels.length === 0 || candidates?.keys.length === 0;
  for (let seen = 0; !isEnd && seen < MOST_EVENTS && found.length <= limit; seen += STEP) {
    const keys = candidates?.keys.slice(seen, seen + STEP);
    const rows = await newestEvents(db, feeds, { ...wanted, from, keys, limit: STEP }).execute();
    for (const event of await withDeliveries(db, rows))
      for (const delivery of event.deliveries) {
        const isBefore = event.id === after.event && delivery.channel <= after.channel;
        if (!isBefore && own.has(delivery.channel) && shown.has(delivery.state))
          found.push({ event, delivery });
      }
    from = (keys?.at(-1) ?? rows.at(-1)?.id ?? 1) - 1;
    isEnd = candidates ? seen + STEP >= candidates.keys.length : rows.length < STEP;
  }
  const end = !isEnd || candidates?.hasMore ? { event: from, channel: 0 } : undefined;
  const deliveries = found.slice(0, limit);
  const last = deliveries.at(-1);
  return {
    deliveries,
    next: found.length > limit && last ? { event: last.event.id, channel: last.delivery.channel } : end,
  };
}

/** PostgreSQL refuses an empty list. */
function orNone<T>(values: readonly T[], none: T): readonly T[] {
  return values.length > 0 ? values : [none];
}

/** Selects the newest events of these feeds, from a key on. `keys`: only those. */
function newestEvents(
  db: Kysely<Schema>,
  feeds: readonly number[],
  {
    tokenId,
    eventId = '',
    from = HIGHEST_KEY,
    keys,
    limit,
  }: EventsWanted & { keys?: readonly number[] | undefined; limit?: number | undefined },
) {
  return selectEvents(db)
    .where('feeds.id', 'in', orNone(feeds, 0))
    .where('events.id', '<=', from)
    .$if(keys !== undefined, (query) => query.where('events.id', 'in', keys ?? []))
    .$if(tokenId !== undefined, (query) =>
      query.where('tokens.feed', 'in', orNone(feeds, 0)).where('tokens.token_id', '=', tokenId ?? ''),
    )
    .$if(isEventId(eventId), (query) => query.where('events.event_id', '=', bytesOfId(eventId)))
    .orderBy('events.id', 'desc')
    .$if(limit !== undefined, (query) => query.limit(limit ?? 0));
}

/** Keys of the current feeds that may have such events. */
async function feedsFor(db: Kysely<Schema>, { registry, eventId }: EventsWanted): Promise<number[]> {
  // Only UUIDs are stored.
  const names = eventId === undefined || isEventId(eventId) ? await findDeliveredFeeds(db, registry) : [];
  const rows = await db.selectFrom('feeds').select('id').where('feed', 'in', orNone(names, '')).execute();
  return rows.map(idOf);
}

/** Keys of events that may be in a list, the newest first. */
interface Candidates {
  keys: number[];
  /** Whether others follow the last one. */
  hasMore: boolean;
}

/** Waiting deliveries that are read for a page. Of more, those of the newest events are sought first. */
const MOST_WAITING = 5_000;

/** Undefined: all events are candidates, because delivered ones are wanted, or because very many wait. */
async function undeliveredIn(
  db: Kysely<Schema>,
  channels: readonly number[],
  { after, limit, states }: Required<Pick<DeliveriesWanted, 'limit' | 'states'>> & { after: Place },
): Promise<Candidates | undefined> {
  if (states === undefined || states.includes('delivered') || channels.length === 0) return undefined;
  const waiting = states.every((state) => state === 'dead')
    ? []
    : await waitingIn(db, channels, !states.includes('waiting'));
  if (waiting.length > MOST_WAITING) return undefined;
  const dead = states.includes('dead') ? await deadIn(db, channels, after, limit + 1) : [];
  const hasMore = dead.length > limit;
  const lowest = hasMore ? (dead.at(-1)?.event ?? 0) : 0;
  const keys = new Set([...waiting, ...dead].map(({ event }) => event));
  return {
    keys: [...keys].filter((key) => key >= lowest && key <= after.event).sort((left, right) => right - left),
    hasMore,
  };
}

function deadIn(
  db: Kysely<Schema>,
  channels: readonly number[],
  after: Place,
  limit: number,
): Promise<{ event: number }[]> {
  return db
    .selectFrom('dead_letters')
    .select('event')
    .where('channel', 'in', channels)
    .where((eb) =>
      eb.or([
        eb('event', '<', after.event),
        eb.and([eb('event', '=', after.event), eb('channel', '>', after.channel)]),
      ]),
    )
    .orderBy('event', 'desc')
    .limit(limit)
    .execute();
}

/** @param areFailed only the heads of queues whose attempt failed. */
function waitingIn(
  db: Kysely<Schema>,
  channels: readonly number[],
  areFailed: boolean,
): Promise<{ event: number }[]> {
  return db
    .selectFrom((eb) =>
      eb
        .selectFrom('queues')
        .select(['channel', 'token', 'head'])
        .where('channel', 'in', channels)
        // Lets SQLite use the index of queues that are not empty.
        .where('next_attempt_at', '>=', 0)
        .$if(areFailed, (query) => query.where(HAS_FAILED))
        .limit(MOST_WAITING + 1)
        .as('waiting'),
    )
    .innerJoin('deliveries', (join) =>
      join
        .onRef('deliveries.channel', '=', 'waiting.channel')
        .onRef('deliveries.token', '=', 'waiting.token')
        .onRef('deliveries.position', areFailed ? '=' : '>=', 'waiting.head'),
    )
    .select('deliveries.event')
    .limit(MOST_WAITING + 1)
    .execute();
}

function selectEvents(db: Kysely<Schema>) {
  return (
    db
      .selectFrom('events')
      .innerJoin('tokens', 'tokens.id', 'events.token')
      // The sum keeps SQLite from reading all events of the feeds, and sorting them.
      .innerJoin('feeds', (join) => join.on((eb) => eb('feeds.id', '=', eb('events.feed', '+', 0))))
      .select(['events.id', 'events.token', 'events.event_id', 'events.type', 'events.orphaned_at'])
      .select(['events.block_number as blockNumber', 'tokens.token_id as tokenId'])
      .select(['feeds.id as feedId', 'feeds.feed'])
  );
}

type EventRow = Awaited<ReturnType<ReturnType<typeof selectEvents>['execute']>>[number];

/** An event in a channel. */
interface Entry {
  event: number;
  channel: number;
  attempts: Attempt[];
  isDead: boolean;
  waits: { state: 'waiting' | 'failed'; nextAttemptAt: number | null } | undefined;
}

/** The events of these rows with their deliveries, in the same order. */
async function withDeliveries<Row extends EventRow>(
  db: Kysely<Schema>,
  rows: readonly Row[],
): Promise<(Row & StoredEvent & { deliveries: Delivery[] })[]> {
  if (rows.length === 0) return [];
  const entries = new Map<string, Entry>();
  for (const entry of await inBatches(rows, (some) => entriesOf(db, some))) entries.set(keyOf(entry), entry);
  const channels = await channelsFor(db, rows, [...entries.values()]);
  return rows.map((row) => {
    const isOrphaned = row.orphaned_at !== null;
    return {
      ...row,
      eventId: idOfBytes(row.event_id),
      registry: registryOfFeed(row.feed),
      isOrphaned,
      deliveries: channels.flatMap(({ id: channel, feedId, subscription }) => {
        const entry = entries.get(keyOf({ event: row.id, channel }));
        // An orphaned event was taken out of the queues, so it may be in none of them.
        if (feedId !== row.feedId || (entry === undefined && !isOrphaned)) return [];
        const { attempts = [], isDead, waits } = entry ?? {};
        const gone = isOrphaned ? 'orphaned' : 'delivered';
        const state = isDead ? 'dead' : (waits?.state ?? gone);
        return { channel, subscription, state, nextAttemptAt: waits?.nextAttemptAt ?? null, attempts };
      }),
    };
  });
}

function keyOf({ event, channel }: Pick<Entry, 'event' | 'channel'>): string {
  return `${event}/${channel}`;
}

function feedsOf(rows: readonly EventRow[]): number[] {
  return [...new Set(rows.map(({ feedId }) => feedId))];
}

/** The channels of the entries, or all of the events' feeds if an event is orphaned. */
async function channelsFor(
  db: Kysely<Schema>,
  rows: readonly EventRow[],
  entries: readonly Entry[],
): Promise<{ id: number; feedId: number; subscription: string }[]> {
  const isAny = rows.some((row) => row.orphaned_at !== null);
  const known = [...new Set(entries.map(({ channel }) => channel))];
  return joinedChannels(db)
    .select(['channels.id', 'channels.feed as feedId', 'subscriptions.name as subscription'])
    .where('channels.feed', 'in', feedsOf(rows))
    .$if(!isAny, (query) => query.where('channels.id', 'in', orNone(known, 0)))
    .orderBy('channels.id')
    .execute();
}

/** The number of statements does not depend on the number of channels. */
async function entriesOf(db: Kysely<Schema>, rows: readonly EventRow[]): Promise<Entry[]> {
  const ids = rows.map(idOf);
  const feeds = feedsOf(rows);
  const waiting = await waitingDeliveries(db)
    .innerJoin('channels', 'channels.id', 'queues.channel')
    .select(['deliveries.event', 'deliveries.channel', 'deliveries.position'])
    .select(['queues.head', 'queues.next_attempt_at as nextAttemptAt', HAS_FAILED.as('hasFailed')])
    .where('channels.feed', 'in', feeds)
    .where('queues.token', 'in', [...new Set(rows.map(({ token }) => token))])
    .where('deliveries.event', 'in', ids)
    .execute();
  // Read after the queues: an event that left its queue meanwhile is found here.
  const [attempts, dead] = await Promise.all([
    db
      .selectFrom('attempts')
      .select(['event', 'channel', 'attempt', 'attempted_at as attemptedAt', 'status', 'error'])
      .select('milliseconds')
      .where('event', 'in', ids)
      .orderBy('attempted_at')
      .orderBy('attempt')
      .execute(),
    db
      .selectFrom('channels')
      .innerJoin('dead_letters', 'dead_letters.channel', 'channels.id')
      .select(['dead_letters.channel', 'dead_letters.event'])
      .where('channels.feed', 'in', feeds)
      .where('dead_letters.event', 'in', ids)
      .execute(),
  ]);
  const entries = new Map<string, Entry>();
  const entryOf = ({ event, channel }: { event: number; channel: number }): Entry => {
    const key = keyOf({ event, channel });
    const entry = entries.get(key) ?? { event, channel, attempts: [], isDead: false, waits: undefined };
    entries.set(key, entry);
    return entry;
  };
  for (const { event, channel, ...attempt } of attempts) entryOf({ event, channel }).attempts.push(attempt);
  for (const one of dead) entryOf(one).isDead = true;
  for (const { position, head, nextAttemptAt, hasFailed, ...one } of waiting)
    entryOf(one).waits =
      position === head
        ? { state: hasFailed ? 'failed' : 'waiting', nextAttemptAt }
        : { state: 'waiting', nextAttemptAt: null };
  return [...entries.values()];
}
