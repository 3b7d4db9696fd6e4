import type { Expression, ExpressionBuilder, Kysely, Selectable, SqlBool, Transaction } from 'kysely';
import { v5 as uuidV5 } from 'uuid';
import type { Retraction } from '../../client/events';
import { inBatches } from '../database/batches';
import type { EventsTable, Schema } from '../database/schema';
import { EVENT_ID_NAMESPACE, type CloudEvent } from '../events/cloud-event';
import { RETRACTED_TYPE } from '../events/event-types';
import { bytesOfId, enqueue, idOf, idOfBytes, insertEvents, keyIn, type Enqueued } from './stored-events';

/**
 * Terms of retractions:
 *
 * - announcement: a row that sends an event. The first one is called the original; its audience is `all`.
 *   After a retraction, a further row with another id announces the event again.
 * - retraction: a row that takes one announcement back.
 *
 * In a channel's queue, the announcements and retractions of an event alternate. The last of them therefore
 * tells whether the subscriber has the event.
 */

/** A row of an event besides its original. */
interface OtherRow {
  id: number;
  original: number;
  isRetraction: boolean;
}

/**
 * Reads the retractions and further announcements of these originals. An event without retractions has none.
 */
export async function otherRowsOf(
  db: Kysely<Schema>,
  originals: readonly { id: number }[],
): Promise<OtherRow[]> {
  const rows = await inBatches(originals, (some) =>
    db
      .selectFrom('events')
      .select(['id', 'original', 'type'])
      .where('original', 'in', some.map(idOf))
      .execute(),
  );
  return rows.map(({ id, original, type }) => ({
    id,
    original: original ?? id,
    isRetraction: type === RETRACTED_TYPE,
  }));
}

/** The last announcement or retraction of an event in a channel. */
interface LastEntry {
  channel: number;
  /** Key of the original. */
  original: number;
  /** Key of the entry's row. */
  event: number;
  isRetraction: boolean;
}

/** Finds the last entry of each of these originals in each of these channels, waiting or not. */
export async function lastEntriesOf(
  db: Kysely<Schema>,
  channels: readonly number[],
  originals: readonly { id: number; token: number }[],
  others: readonly OtherRow[],
): Promise<LastEntry[]> {
  const last = new Map<string, LastEntry>();
  if (channels.length === 0) return [];
  const rowsByOriginal = new Map<number, OtherRow[]>();
  for (const { id } of originals) rowsByOriginal.set(id, [{ id, original: id, isRetraction: false }]);
  for (const row of others) rowsByOriginal.get(row.original)?.push(row);
  const rows = new Map([...rowsByOriginal.values()].flat().map((row) => [row.id, row]));
  const deliveries = await inBatches(originals, (some) =>
    db
      .selectFrom('deliveries')
      .select(['channel', 'event'])
      .where('channel', 'in', channels)
      .where('token', 'in', [...new Set(some.map(({ token }) => token))])
      .where(
        'event',
        'in',
        some.flatMap(({ id }) => (rowsByOriginal.get(id) ?? []).map(idOf)),
      )
      .orderBy('channel')
      .orderBy('token')
      .orderBy('position')
      .execute(),
  );
  for (const { channel, event } of deliveries) {
    const row = rows.get(event);
    if (row === undefined) continue;
    const { original, isRetraction } = row;
    last.set(`${channel}/${original}`, { channel, original, event, isRetraction });
  }
  return [...last.values()];
}

/** An event's row to enqueue for a channel. */
interface Announcement {
  id: number;
  token: number;
  body: string;
}

/**
 * Replaces each original that was retracted for the channel by its present announcement: the subscriber drops
 * the id of the original. Call it before stored events are enqueued for a channel.
 */
export async function presentAnnouncements<T extends Announcement>(
  db: Kysely<Schema>,
  channel: number,
  originals: readonly T[],
): Promise<T[]> {
  const others = await otherRowsOf(db, originals);
  if (others.length === 0) return [...originals];
  const retractions = others.filter(({ isRetraction }) => isRetraction);
  const queued = await lastEntriesOf(db, [channel], originals, retractions);
  const retracted = new Set(queued.flatMap(({ original, isRetraction }) => (isRetraction ? original : [])));
  if (retracted.size === 0) return [...originals];
  const present = await db
    .selectFrom('events')
    .select(['id', 'original', 'token', 'body'])
    .where('original', 'in', [...retracted])
    .where('orphaned_at', 'is', null)
    .where(isOfBlock)
    .execute();
  const byOriginal = new Map(present.map(({ original, ...row }) => [original, row]));
  return originals.map((one) => (retracted.has(one.id) ? { ...one, ...byOriginal.get(one.id) } : one));
}

/**
 * A condition on rows of events: the row is not a retraction. A retraction names a block but is not an event
 * in it.
 */
export function isOfBlock(eb: ExpressionBuilder<Schema, 'events'>): Expression<SqlBool> {
  return eb('events.type', '!=', RETRACTED_TYPE);
}

/**
 * Returns the ids. The id of a stored event is replaced by one derived from it. A block may be orphaned,
 * mined again, and orphaned again: the ids that are made from its hash have then been used.
 */
export async function unusedIds(
  db: Transaction<Schema>,
  feed: number,
  wanted: readonly string[],
): Promise<string[]> {
  return inBatches(wanted, async (some) => {
    for (let ids = some; ;) {
      const rows = await db
        .selectFrom('events')
        .select('event_id')
        .where('feed', '=', feed)
        .where('event_id', 'in', ids.map(bytesOfId))
        .execute();
      if (rows.length === 0) return ids;
      const used = new Set(rows.map(({ event_id }) => idOfBytes(event_id)));
      ids = ids.map((id) => (used.has(id) ? uuidV5(id, EVENT_ID_NAMESPACE) : id));
    }
  });
}

/** An announcement whose block is orphaned. */
export type OrphanedAnnouncement = Pick<
  Selectable<EventsTable>,
  'id' | 'event_id' | 'original' | 'token' | 'block_number' | 'block_hash' | 'log_index' | 'body'
>;

/**
 * Queues a retraction of each announcement for the channels with retractions that received the announcement,
 * or may have. Waiting announcements must have been removed from the queues before.
 *
 * The newest announcement of a token is retracted first, so that a subscriber can undo them one by one.
 *
 * @param announcements in chain order.
 * @param cutOff announcements that were removed from the queues, and may have been sent.
 */
export async function retract(
  db: Transaction<Schema>,
  feed: number,
  announcements: readonly OrphanedAnnouncement[],
  channels: readonly number[],
  cutOff: readonly { event: number; channel: number }[],
  now: number,
): Promise<void> {
  if (channels.length === 0 || announcements.length === 0) return;
  const originals = announcements.filter(({ original }) => original === null);
  const others = await otherRowsOf(db, originals);
  const told = new Map<number, Set<number>>();
  const addTold = (event: number, channel: number): void =>
    void told.set(event, (told.get(event) ?? new Set()).add(channel));
  for (const { event, channel } of await lastEntriesOf(db, channels, originals, others))
    addTold(event, channel);
  for (const { event, channel } of cutOff) if (channels.includes(channel)) addTold(event, channel);

  const newestFirst = announcements.filter(({ id }) => told.has(id)).reverse();
  const ids = await unusedIds(
    db,
    feed,
    newestFirst.map(({ event_id, block_hash }) =>
      uuidV5(`${idOfBytes(event_id)}:${block_hash}`, EVENT_ID_NAMESPACE),
    ),
  );
  // A retraction is stored with the block and the log index of its announcement.
  const retractions = newestFirst.map(
    ({ id, event_id, original, token, block_number, block_hash, log_index, body }, index) => ({
      cloudEvent: toRetraction(JSON.parse(body) as CloudEvent, idOfBytes(event_id), ids[index] ?? '', now),
      token,
      at: { blockNumber: block_number, blockHash: block_hash, blockLogIndex: log_index },
      original: original ?? id,
    }),
  );
  const keys = await insertEvents(db, feed, retractions, now);
  const queued = newestFirst.flatMap(({ id, token }, index): Enqueued[] => {
    const event = keyIn(keys, ids[index] ?? '');
    return [...(told.get(id) ?? [])].map((channel) => ({ channel, token, event }));
  });
  await enqueue(db, queued, now);
}

/** The CloudEvent of a retraction (docs/webhooks.md, "Retractions"). */
function toRetraction(
  { source, type, data }: CloudEvent,
  retracts: string,
  id: string,
  now: number,
): Retraction {
  const { chainKey, chainId, registryAddress, tokenId, tokenIdHex } = data;
  const { blockNumber, transactionHash, logIndex } = data;
  return {
    specversion: '1.0',
    id,
    source,
    type: RETRACTED_TYPE,
    datacontenttype: 'application/json',
    time: new Date(now).toISOString(),
    subject: tokenId,
    data: {
      chainKey,
      chainId,
      registryAddress,
      tokenId,
      ...(tokenIdHex !== undefined && { tokenIdHex }),
      retracts,
      retracted: { type, blockNumber, transactionHash, logIndex },
    },
  };
}
