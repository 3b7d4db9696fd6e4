import { sql, type Insertable, type Kysely, type Selectable, type SqlBool, type Transaction } from 'kysely';
import { parse, stringify, validate } from 'uuid';
import type { OperationalEvent, Retraction } from '../../client/events';
import { traceOfEvent } from '../base/trace';
import { inBatches } from '../database/batches';
import { compiled } from '../database/compiled';
import type { DeliveriesTable, EventsTable, QueuesTable, Schema } from '../database/schema';
import { RETRACTED_TYPE, type CloudEvent } from '../events/cloud-event';
import type { RegistryEvent } from '../registry/registry-event';

/** The 16 bytes of an event's id, as they are stored. None for a text that is no UUID: no event has it. */
export function bytesOfId(eventId: string): Buffer {
  return Buffer.from(validate(eventId) ? parse(eventId) : []);
}

/** An event's id from its stored bytes. */
export function idOfBytes(bytes: Uint8Array | ArrayBuffer): string {
  return stringify(new Uint8Array(bytes));
}

/** A stored event. */
export type EventRow = Selectable<EventsTable>;

/** The key of a row. */
export function idOf({ id }: { id: number }): number {
  return id;
}

/** PostgreSQL's largest `integer`: no key and no log index is higher. */
export const HIGHEST_KEY = 2 ** 31 - 1;

/** A position in the order of the log. `id` orders a retraction after its event, whose position it has. */
export type Place = Pick<EventRow, 'block_number' | 'log_index' | 'id'>;

/** The place before the events of a block. */
export function startOf(block: number): Place {
  return { block_number: block, log_index: -1, id: 0 };
}

/** Selects a feed's events after a place, in order. Both engines find them in the index by block. */
export function eventsAfter(db: Kysely<Schema>, feed: number, { block_number, log_index, id }: Place) {
  return db
    .selectFrom('events')
    .selectAll('events')
    .where('events.feed', '=', feed)
    .where('events.block_number', '>=', block_number)
    .where(
      sql<boolean>`(events.block_number, events.log_index, events.id)
        > (${block_number}, ${log_index}, ${id})`,
    )
    .orderBy('events.block_number')
    .orderBy('events.log_index')
    .orderBy('events.id');
}

/**
 * The keys of tokens' rows, which are added if they are missing. A token id is decimal, or empty for events
 * of the registry itself: they carry token id 0, and have a queue of their own. The subject of an operational
 * event stands in the place of a token.
 */
export async function keysOfTokens(
  db: Transaction<Schema>,
  feed: number,
  tokenIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await inBatches([...new Set(tokenIds)], async (wanted) => {
    const { rows: known } = await tokensNamed(db, { feed, wanted });
    const names = new Set(known.map(({ token_id }) => token_id));
    const missing = wanted.filter((tokenId) => !names.has(tokenId));
    if (missing.length === 0) return known;
    const { rows: added } = await addTokens(db, { rows: missing.map((token_id) => ({ feed, token_id })) });
    return [...known, ...added];
  });
  return new Map(rows.map(({ id, token_id }) => [token_id, id]));
}

const tokensNamed = compiled((db, { feed, wanted }: { feed: number; wanted: string[] }) =>
  db.selectFrom('tokens').select(['id', 'token_id']).where('feed', '=', feed).where('token_id', 'in', wanted),
);

const addTokens = compiled((db, { rows }: { rows: { feed: number; token_id: string }[] }) =>
  db.insertInto('tokens').values(rows).returning(['id', 'token_id']),
);

/**
 * The key of a row that was read or added.
 *
 * @throws Error if there is none: a delivery without its event or token would be claimed for ever.
 */
export function keyIn(keys: ReadonlyMap<string, number>, name: string): number {
  const key = keys.get(name);
  if (key === undefined) throw new Error(`The database gave no key for the row of ${name}`);
  return key;
}

/** An event, and a channel that it was sent to, or may have been. */
export interface Sending {
  event: number;
  channel: number;
  isDelivered: SqlBool;
}

/** The channels to which attempts for these events are recorded. `channel`: only this one. */
export async function attemptsOf(
  db: Kysely<Schema>,
  events: readonly number[],
  channel?: number,
): Promise<Sending[]> {
  return inBatches(events, (some) =>
    db
      .selectFrom('attempts')
      .select((eb) => ['event', 'channel', eb('error', 'is', null).as('isDelivered')])
      .distinct()
      .where('event', 'in', some)
      .$if(channel !== undefined, (query) => query.where('channel', '=', channel ?? 0))
      .execute(),
  );
}

/** The channels of each event. */
export function channelsByEvent(
  rows: readonly { event: number; channel: number }[],
): ReadonlyMap<number, ReadonlySet<number>> {
  const channels = new Map<number, Set<number>>();
  for (const { event, channel } of rows) channels.set(event, (channels.get(event) ?? new Set()).add(channel));
  return channels;
}

/** An event that is to be stored. */
export interface NewEvent {
  cloudEvent: CloudEvent | Retraction | OperationalEvent;
  /** Key of the token's row. */
  token: number;
  at: Pick<RegistryEvent, 'blockNumber' | 'blockHash' | 'blockLogIndex' | 'trace'>;
  /** Key of the event that this one retracts or announces again. Undefined for the event itself. */
  original?: number;
  /** Undefined: `all`, for the event itself. */
  audience?: 'fetching' | 'retracting';
  /** Whether clients that fetch do not get it. */
  isUnfetched?: boolean;
  /** Epoch milliseconds. Undefined: now. */
  recordedAt?: number;
}

/** Stores those events whose ids are new to the feed. Returns their keys by id. */
export async function insertEvents(
  db: Transaction<Schema>,
  feed: number,
  events: readonly NewEvent[],
  now: number,
): Promise<ReadonlyMap<string, number>> {
  const fetched = events.filter(({ isUnfetched }) => !isUnfetched).length;
  let position = fetched === 0 ? 0 : await takePositions(db, feed, fetched);
  const rows = events.map(({ cloudEvent, token, at, original, audience, isUnfetched, recordedAt }) => ({
    feed,
    token,
    event_id: bytesOfId(cloudEvent.id),
    type: cloudEvent.type,
    block_number: at.blockNumber,
    block_hash: at.blockHash,
    log_index: at.blockLogIndex,
    body: JSON.stringify(cloudEvent),
    audience: audience ?? ('all' as const),
    original: original ?? null,
    recorded_at: recordedAt ?? now,
    trace: at.trace ?? traceOfEvent(cloudEvent.id),
    position: isUnfetched ? null : ++position,
  }));
  const inserted = await inBatches(
    rows,
    async (some) => (await addEvents(db, { rows: some })).rows,
    // Bodies are long: SQLite blocks the event loop.
    200,
  );
  return new Map(inserted.map(({ id, event_id }) => [idOfBytes(event_id), id]));
}

/**
 * Takes the next positions of a feed, and returns the one before them. Until the transaction ends, no other
 * takes positions of the feed: whoever sees a position sees all before it, on PostgreSQL, too.
 */
async function takePositions(db: Transaction<Schema>, feed: number, count: number): Promise<number> {
  const { rows } = await movePositions(db, { feed, count });
  return (rows[0]?.last_position ?? 0) - count;
}

const movePositions = compiled((db, { feed, count }: { feed: number; count: number }) =>
  db
    .updateTable('feeds')
    .set((eb) => ({ last_position: eb('last_position', '+', count) }))
    .where('id', '=', feed)
    .returning('last_position'),
);

const addEvents = compiled((db, { rows }: { rows: Insertable<EventsTable>[] }) =>
  db
    .insertInto('events')
    .values(rows)
    .onConflict((conflict) => conflict.columns(['event_id', 'feed']).doNothing())
    .returning(['id', 'event_id']),
);

/** An event, and one of the channels that it is for. */
export type Enqueued = Omit<Insertable<DeliveriesTable>, 'position'>;

/**
 * Appends events to token queues, in the given order. An idle queue falls due at once; a queue that backs off
 * keeps its time. Queues are written in the order of their keys, as wherever several are locked (see
 * settle-queues.ts).
 */
export async function enqueue(
  db: Transaction<Schema>,
  enqueued: readonly Enqueued[],
  now: number,
): Promise<void> {
  const queues = new Map<string, { channel: number; token: number; events: number[] }>();
  for (const { channel, token, event } of enqueued) {
    const key = `${channel}/${token}`;
    const queue = queues.get(key) ?? { channel, token, events: [] };
    queue.events.push(event);
    queues.set(key, queue);
  }
  const inOrder = [...queues.values()].sort(
    (left, right) => left.channel - right.channel || left.token - right.token,
  );
  const empty = { head: 1, attempts: 0, next_attempt_at: now };
  const tails = await inBatches(inOrder, async (some) => {
    const rows = some.map(({ channel, token, events }) => ({
      channel,
      token,
      tail: events.length,
      ...empty,
    }));
    return (await lengthenQueues(db, { rows })).rows;
  });
  const deliveries = tails.flatMap(({ channel, token, tail }) => {
    const events = queues.get(`${channel}/${token}`)?.events ?? [];
    return events.map((event, index) => ({
      channel,
      token,
      position: tail - events.length + 1 + index,
      event,
    }));
  });
  await inBatches(deliveries, async (rows) => (await addDeliveries(db, { rows })).rows);
}

const lengthenQueues = compiled((db, { rows }: { rows: Insertable<QueuesTable>[] }) =>
  db
    .insertInto('queues')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['channel', 'token']).doUpdateSet((eb) => ({
        tail: sql<number>`queues.tail + excluded.tail`,
        next_attempt_at: eb.fn.coalesce('queues.next_attempt_at', 'excluded.next_attempt_at'),
      })),
    )
    .returning(['channel', 'token', 'tail']),
);

const addDeliveries = compiled((db, { rows }: { rows: Insertable<DeliveriesTable>[] }) =>
  db.insertInto('deliveries').values(rows),
);

/** Selects the deliveries that wait: those of each queue from its head on. */
export function waitingDeliveries(db: Kysely<Schema>) {
  return db
    .selectFrom('queues')
    .innerJoin('deliveries', (join) =>
      join
        .onRef('deliveries.channel', '=', 'queues.channel')
        .onRef('deliveries.token', '=', 'queues.token')
        .onRef('deliveries.position', '>=', 'queues.head'),
    );
}

/** Forgets that a channel has given these events up. */
export async function forgetLetters(
  db: Transaction<Schema>,
  channel: number,
  events: readonly number[],
): Promise<void> {
  await inBatches(events, (some) =>
    db.deleteFrom('dead_letters').where('channel', '=', channel).where('event', 'in', some).execute(),
  );
}

/** An event, as far as rules judge it. */
export interface JudgedEvent {
  type: string;
  body: string;
  /** The body of the event that a retraction takes back. Null if nothing of it is kept. */
  announced: string | null;
}

/** If the event of a retraction was purged, it was mined again, and its other announcement says the same. */
export const ANNOUNCED_BODY = sql<string | null>`case when events.type = ${RETRACTED_TYPE} then
  (select announced.body from events announced where announced.type <> ${RETRACTED_TYPE}
    and (announced.id = events.original or announced.original = events.original)
    order by announced.original is not null limit 1) end`;

/** The body by which it is decided who wants an event, or may see it. */
export function judgedBody({ type, body, announced }: JudgedEvent): string | null {
  return type === RETRACTED_TYPE ? announced : body;
}
