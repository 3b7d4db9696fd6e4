import { sql, type Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { channelKeysOf } from './channels';
import { findFeeds, registryOfFeed } from './find-feeds';
import { bytesOfId, idOfBytes, isEventId } from './stored-ids';

/**
 * Where an event is in a subscription:
 *
 * - waiting: it has not been delivered yet;
 * - failed: it waits for another attempt;
 * - dead: it was given up, and is a dead letter;
 * - delivered: the subscriber has it;
 * - orphaned: its block was orphaned.
 */
export type DeliveryState = 'waiting' | 'failed' | 'dead' | 'delivered' | 'orphaned';

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
  eventId: string;
  type: string;
  /** Chain id and address. */
  registry: string;
  /** Name of the feed. */
  feed: string;
  /** In decimals. Empty for events of the registry itself. */
  tokenId: string;
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
export const HAS_FAILED = sql<boolean>`queues.attempts > case when queues.lease is null then 0 else 1 end`;

/** Both engines limit the parameters of a statement. */
const BATCH = 200;

/**
 * The event with its deliveries, once for each feed that has it: a restarted local chain may have had the
 * same event. The feed that was opened last comes first.
 */
export async function deliveriesOfEvent(db: Kysely<Schema>, eventId: string): Promise<DeliveredEvent[]> {
  if (!isEventId(eventId)) return [];
  const rows = await selectEvents(db)
    .select('events.body')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .where('events.event_id', '=', bytesOfId(eventId))
    .orderBy('feeds.opened_at', 'desc')
    .execute();
  return withBodies(await withDeliveries(db, rows));
}

/**
 * The events of a token in these blocks with their deliveries, in the order of the log. Those whose blocks
 * were orphaned are left out.
 *
 * @param registry chain id and address.
 */
export async function deliveriesOfToken(
  db: Kysely<Schema>,
  registry: string,
  tokenId: bigint,
  blocks: readonly number[],
): Promise<DeliveredEvent[]> {
  const [name = ''] = await findFeeds(db, registry);
  const token = await db
    .selectFrom('tokens')
    .innerJoin('feeds', 'feeds.id', 'tokens.feed')
    .select(['tokens.id', 'tokens.feed'])
    .where('feeds.feed', '=', name)
    .where('tokens.token_id', '=', tokenId.toString())
    .executeTakeFirst();
  if (token === undefined) return [];
  const events: DeliveredEvent[] = [];
  for (let from = 0; from < blocks.length; from += BATCH) {
    const rows = await selectEvents(db)
      .select('events.body')
      .where('events.feed', '=', token.feed)
      .where('events.block_number', 'in', blocks.slice(from, from + BATCH))
      .where('events.token', '=', token.id)
      .where('events.orphaned_at', 'is', null)
      .orderBy('events.block_number')
      .orderBy('events.log_index')
      .orderBy('events.id')
      .execute();
    events.push(...withBodies(await withDeliveries(db, rows)));
  }
  return events;
}

/** Selects deliveries. Undefined: all states, all subscriptions. Those that failed are waiting, too. */
export interface DeliveriesWanted {
  state: Exclude<DeliveryState, 'orphaned'> | undefined;
  subscription: string | undefined;
  limit: number;
}

/** Deliveries of the newest events first. */
export interface NewestDeliveries {
  deliveries: { event: StoredEvent; delivery: Delivery }[];
  /** Whether there are more than were asked for. */
  hasMore: boolean;
}

/** Events whose deliveries are read in one step, and in all, for a list. */
const STEP = 100;
const MOST_EVENTS = 2_000;

/**
 * Lists deliveries of the current feed of each registry, those of the newest events first. It looks at a
 * bounded number of events, so a list may be short although more follow: `hasMore` says so.
 */
export async function newestDeliveries(
  db: Kysely<Schema>,
  wanted: DeliveriesWanted,
): Promise<NewestDeliveries> {
  const names = await findFeeds(db);
  if (names.length === 0) return { deliveries: [], hasMore: false };
  const keys = await db.selectFrom('feeds').select('id').where('feed', 'in', names).execute();
  const feeds = keys.map(({ id }) => id);
  const candidates = await candidatesFor(db, wanted);
  const deliveries: NewestDeliveries['deliveries'] = [];
  let hasMore = true;
  let below: number | undefined;
  for (let seen = 0; seen < MOST_EVENTS && deliveries.length <= wanted.limit; seen += STEP) {
    const ids = candidates?.ids.slice(seen, seen + STEP);
    const isEnd = ids?.length === 0;
    const rows = isEnd ? [] : await newestEvents(db, feeds, ids, below);
    if (isEnd || (ids === undefined && rows.length === 0)) {
      hasMore = candidates?.hasMore === true;
      break;
    }
    below = rows.at(-1)?.id ?? below;
    for (const { event, deliveries: found } of await withDeliveries(db, rows))
      for (const delivery of found) if (isWanted(delivery, wanted)) deliveries.push({ event, delivery });
  }
  return {
    deliveries: deliveries.slice(0, wanted.limit),
    hasMore: hasMore || deliveries.length > wanted.limit,
  };
}

function isWanted({ state, subscription }: Delivery, wanted: DeliveriesWanted): boolean {
  if (state === 'orphaned' || (wanted.subscription ?? subscription) !== subscription) return false;
  const isWaiting = wanted.state === 'waiting' && state === 'failed';
  return wanted.state === undefined || state === wanted.state || isWaiting;
}

/** The newest events of these feeds: those with these keys, or before a key. */
function newestEvents(
  db: Kysely<Schema>,
  feeds: readonly number[],
  ids: readonly number[] | undefined,
  below: number | undefined,
): Promise<EventRow[]> {
  return (
    selectEvents(db)
      .$if(ids !== undefined, (query) => query.where('events.id', 'in', ids ?? []))
      .$if(ids === undefined && below !== undefined, (query) => query.where('events.id', '<', below ?? 0))
      // The sum keeps SQLite from reading all events of the feeds, and sorting them.
      .where((eb) => eb(eb('events.feed', '+', 0), 'in', feeds))
      .orderBy('events.id', 'desc')
      .limit(STEP)
      .execute()
  );
}

/** Keys of events that may be in a list, the newest first. */
interface Candidates {
  ids: number[];
  /** Whether there are more that were not looked at. */
  hasMore: boolean;
}

/** Channels whose rows are read for a list. Channels without any do not count. */
const MOST_CHANNELS = 200;

/**
 * Undefined for lists with delivered events: they go through all events. Otherwise these are the newest dead
 * letters of each channel, or the events of those of its queues that are due first. An event whose attempt
 * failed is due later than one that waits for its first: those that failed are sought from the other end.
 */
async function candidatesFor(
  db: Kysely<Schema>,
  { state, subscription, limit }: DeliveriesWanted,
): Promise<Candidates | undefined> {
  if (state === undefined || state === 'delivered') return undefined;
  const channels = await channelsWith(db, subscription, state === 'dead' ? 'dead_letters' : 'queues');
  const ids = new Set<number>();
  let hasMore = channels.length > MOST_CHANNELS;
  for (const channel of channels.slice(0, MOST_CHANNELS)) {
    const rows =
      state === 'dead'
        ? await newestDead(db, channel, limit + 1)
        : await queuedIn(db, channel, state === 'failed', limit + 1);
    for (const { event } of rows) ids.add(event);
    hasMore ||= state !== 'dead' && rows.length > limit;
  }
  const newest = [...ids].sort((left, right) => right - left);
  return { ids: newest.slice(0, MOST_EVENTS), hasMore: hasMore || newest.length > MOST_EVENTS };
}

function newestDead(db: Kysely<Schema>, channel: number, limit: number): Promise<{ event: number }[]> {
  return db
    .selectFrom('dead_letters')
    .select('event')
    .where('channel', '=', channel)
    .orderBy('event', 'desc')
    .limit(limit)
    .execute();
}

/** @param areFailed only the heads of the queues that are due last. */
function queuedIn(
  db: Kysely<Schema>,
  channel: number,
  areFailed: boolean,
  queues: number,
): Promise<{ event: number }[]> {
  const direction = areFailed ? 'desc' : 'asc';
  return db
    .selectFrom((eb) =>
      eb
        .selectFrom('queues')
        .select(['channel', 'token', 'head', 'next_attempt_at'])
        .where('channel', '=', channel)
        .where('next_attempt_at', 'is not', null)
        .orderBy('next_attempt_at', direction)
        .limit(queues)
        .as('due'),
    )
    .innerJoin('deliveries', (join) =>
      join
        .onRef('deliveries.channel', '=', 'due.channel')
        .onRef('deliveries.token', '=', 'due.token')
        .onRef('deliveries.position', areFailed ? '=' : '>=', 'due.head'),
    )
    .select('deliveries.event')
    .orderBy('due.next_attempt_at', direction)
    .orderBy('deliveries.position')
    .limit(MOST_EVENTS)
    .execute();
}

/** The channels of the current feeds that have such rows. Each is found with a key. */
async function channelsWith(
  db: Kysely<Schema>,
  subscription: string | undefined,
  table: 'queues' | 'dead_letters',
): Promise<number[]> {
  const channels = await channelKeysOf(db, await findFeeds(db), subscription);
  if (channels.length === 0) return [];
  const rows = await db
    .selectFrom('channels')
    .select('channels.id')
    .where('channels.id', 'in', channels)
    .where((eb) =>
      eb.exists(
        table === 'queues'
          ? eb
              .selectFrom('queues')
              .select('queues.channel')
              .whereRef('queues.channel', '=', 'channels.id')
              .where('queues.next_attempt_at', 'is not', null)
          : eb
              .selectFrom('dead_letters')
              .select('dead_letters.channel')
              .whereRef('dead_letters.channel', '=', 'channels.id'),
      ),
    )
    .orderBy('channels.id')
    .execute();
  return rows.map(({ id }) => id);
}

function selectEvents(db: Kysely<Schema>) {
  return db
    .selectFrom('events')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .select(['events.id', 'events.feed', 'events.token', 'events.event_id', 'events.type'])
    .select(['events.orphaned_at', 'tokens.token_id']);
}

type EventRow = Awaited<ReturnType<ReturnType<typeof selectEvents>['execute']>>[number];

/** What was found of an event in a channel. */
interface Entry {
  attempts: Attempt[];
  isDead: boolean;
  waits: { state: 'waiting' | 'failed'; nextAttemptAt: number | null } | undefined;
}

/** Entries by the keys of event and channel. */
type Entries = Map<number, Map<number, Entry>>;

function entryIn(entries: Entries, event: number, channel: number): Entry {
  const ofEvent = entries.get(event) ?? new Map<number, Entry>();
  const entry = ofEvent.get(channel) ?? { attempts: [], isDead: false, waits: undefined };
  entries.set(event, ofEvent.set(channel, entry));
  return entry;
}

/** A row of an event, and what it says. */
interface Read<Row extends EventRow> {
  row: Row;
  event: StoredEvent;
  deliveries: Delivery[];
}

function withBodies(events: readonly Read<EventRow & { body: string }>[]): DeliveredEvent[] {
  return events.map(({ row, event, deliveries }) => ({ ...event, body: row.body, deliveries }));
}

/** The events of these rows with their deliveries, in the same order. */
async function withDeliveries<Row extends EventRow>(
  db: Kysely<Schema>,
  rows: readonly Row[],
): Promise<Read<Row>[]> {
  if (rows.length === 0) return [];
  const entries: Entries = new Map();
  for (let from = 0; from < rows.length; from += BATCH)
    await findEntries(db, rows.slice(from, from + BATCH), entries);
  const feeds = await feedNames(db, rows);
  const channels = await channelsFor(db, rows, entries);
  return rows.map((row) => {
    const feed = feeds.get(row.feed) ?? '';
    const ofEvent = entries.get(row.id);
    // An orphaned event was taken out of the queues, so it may be in none of them.
    const own = channels.filter(({ id }) => row.orphaned_at !== null || ofEvent?.has(id));
    const eventId = idOfBytes(row.event_id);
    const event = { eventId, type: row.type, registry: registryOfFeed(feed), feed, tokenId: row.token_id };
    return {
      row,
      event,
      deliveries: own
        .filter((channel) => channel.feed === row.feed)
        .map(({ id, subscription }) => {
          const { attempts = [], isDead, waits } = ofEvent?.get(id) ?? {};
          const gone = row.orphaned_at === null ? 'delivered' : 'orphaned';
          const state: DeliveryState = isDead ? 'dead' : (waits?.state ?? gone);
          return { subscription, state, nextAttemptAt: waits?.nextAttemptAt ?? null, attempts };
        }),
    };
  });
}

async function feedNames(
  db: Kysely<Schema>,
  rows: readonly EventRow[],
): Promise<ReadonlyMap<number, string>> {
  const named = await db
    .selectFrom('feeds')
    .select(['id', 'feed'])
    .where('id', 'in', feedsOf(rows))
    .execute();
  return new Map(named.map(({ id, feed }) => [id, feed]));
}

function feedsOf(rows: readonly EventRow[]): number[] {
  return [...new Set(rows.map(({ feed }) => feed))];
}

/** The channels of the entries, or all of the events' feeds if an event is orphaned. */
async function channelsFor(
  db: Kysely<Schema>,
  rows: readonly EventRow[],
  entries: Entries,
): Promise<{ id: number; feed: number; subscription: string }[]> {
  const isAny = rows.some((row) => row.orphaned_at !== null);
  const known = new Set([...entries.values()].flatMap((ofEvent) => [...ofEvent.keys()]));
  // PostgreSQL refuses an empty list.
  if (!isAny && known.size === 0) return [];
  return db
    .selectFrom('channels')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select(['channels.id', 'channels.feed', 'subscriptions.name as subscription'])
    .where('channels.feed', 'in', feedsOf(rows))
    .$if(!isAny, (query) => query.where('channels.id', 'in', [...known]))
    .orderBy('channels.id')
    .execute();
}

/** The number of statements does not depend on the number of channels. */
async function findEntries(db: Kysely<Schema>, rows: readonly EventRow[], entries: Entries): Promise<void> {
  const ids = rows.map(({ id }) => id);
  const feeds = feedsOf(rows);
  const waiting = await db
    .selectFrom('channels')
    .innerJoin('queues', 'queues.channel', 'channels.id')
    .innerJoin('deliveries', (join) =>
      join
        .onRef('deliveries.channel', '=', 'queues.channel')
        .onRef('deliveries.token', '=', 'queues.token')
        .onRef('deliveries.position', '>=', 'queues.head'),
    )
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
  for (const { event, channel, ...attempt } of attempts)
    entryIn(entries, event, channel).attempts.push(attempt);
  for (const { event, channel } of dead) entryIn(entries, event, channel).isDead = true;
  for (const { event, channel, position, head, nextAttemptAt, hasFailed } of waiting)
    entryIn(entries, event, channel).waits =
      position === head
        ? { state: hasFailed ? 'failed' : 'waiting', nextAttemptAt }
        : { state: 'waiting', nextAttemptAt: null };
}
