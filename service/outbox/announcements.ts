import type { Expression, ExpressionBuilder, Kysely, SqlBool, Transaction } from 'kysely';
import { v5 as uuidV5 } from 'uuid';
import type { Schema } from '../database/schema';
import { RETRACTED_TYPE } from '../events/event-types';
import { EVENT_ID_NAMESPACE } from '../events/cloud-event';
import { bytesOfId, idOfBytes } from './stored-ids';

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

/** Keys per statement: both engines limit the parameters. */
const BATCH = 1_000;

/** A row of an event besides its original. */
interface OtherRow {
  id: number;
  original: number;
  isRetraction: boolean;
}

/**
 * Reads the retractions and further announcements of these originals. An event without retractions has none.
 */
export async function otherRowsOf(db: Kysely<Schema>, originals: readonly number[]): Promise<OtherRow[]> {
  const others: OtherRow[] = [];
  for (let from = 0; from < originals.length; from += BATCH) {
    const rows = await db
      .selectFrom('events')
      .select(['id', 'original', 'type'])
      .where('original', 'in', originals.slice(from, from + BATCH))
      .execute();
    for (const { id, original, type } of rows)
      others.push({ id, original: original ?? id, isRetraction: type === RETRACTED_TYPE });
  }
  return others;
}

/** The last announcement or retraction of an event in a channel. */
export interface LastEntry {
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
  for (let from = 0; from < originals.length; from += BATCH) {
    const batch = originals.slice(from, from + BATCH);
    const rows = new Map(
      batch.flatMap(({ id }) => (rowsByOriginal.get(id) ?? []).map((row) => [row.id, row] as const)),
    );
    const deliveries = await db
      .selectFrom('deliveries')
      .select(['channel', 'event'])
      .where('channel', 'in', channels)
      .where('token', 'in', [...new Set(batch.map(({ token }) => token))])
      .where('event', 'in', [...rows.keys()])
      .orderBy('channel')
      .orderBy('token')
      .orderBy('position')
      .execute();
    for (const { channel, event } of deliveries) {
      const row = rows.get(event);
      if (row === undefined) continue;
      const { original, isRetraction } = row;
      last.set(`${channel}/${original}`, { channel, original, event, isRetraction });
    }
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
  const others = await otherRowsOf(
    db,
    originals.map(({ id }) => id),
  );
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
  const ids: string[] = [];
  for (let from = 0; from < wanted.length; from += BATCH) {
    let batch = wanted.slice(from, from + BATCH);
    for (;;) {
      const rows = await db
        .selectFrom('events')
        .select('event_id')
        .where('feed', '=', feed)
        .where('event_id', 'in', batch.map(bytesOfId))
        .execute();
      if (rows.length === 0) break;
      const used = new Set(rows.map(({ event_id }) => idOfBytes(event_id)));
      batch = batch.map((id) => (used.has(id) ? uuidV5(id, EVENT_ID_NAMESPACE) : id));
    }
    ids.push(...batch);
  }
  return ids;
}
