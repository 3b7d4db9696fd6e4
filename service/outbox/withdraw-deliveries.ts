import type { Selectable, Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema, StreamsTable } from '../database/schema';

/** Rows per statement: both engines limit the parameters. */
const BATCH = 1_000;

/** A stream as it is stored. */
type Stream = Selectable<StreamsTable>;

/** The token queues of a feed that contain, or contained, events of blocks after `block`. */
export async function affectedStreams(
  db: Transaction<Schema>,
  feed: string,
  block: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('events')
    .innerJoin('deliveries', (join) =>
      join.onRef('deliveries.feed', '=', 'events.feed').onRef('deliveries.event_id', '=', 'events.event_id'),
    )
    .select('deliveries.stream')
    .distinct()
    .where('events.feed', '=', feed)
    .where('events.block_number', '>', block)
    .where('events.orphaned_at', 'is', null)
    .execute();
  return rows.map(({ stream }) => stream).sort();
}

/**
 * Reads token queues one by one in the given order. On PostgreSQL they are locked until the transaction ends.
 */
export async function lockStreams(
  { engine }: Database,
  db: Transaction<Schema>,
  streams: readonly string[],
): Promise<Stream[]> {
  const locked: Stream[] = [];
  for (const stream of streams) {
    const row = await db
      .selectFrom('streams')
      .selectAll()
      .where('stream', '=', stream)
      .$if(engine === 'postgres', (query) => query.forUpdate())
      .executeTakeFirst();
    if (row) locked.push(row);
  }
  return locked;
}

/**
 * Removes events from a queue that has no delivery under way. The remaining events move up in order.
 *
 * @returns the removed head, if an attempt of it had begun. The attempt is recorded nowhere else if the
 *   process died during it.
 */
export async function removeFromStream(
  db: Transaction<Schema>,
  { stream, feed, head, tail, attempts, next_attempt_at }: Stream,
  unwanted: ReadonlySet<string>,
  now: number,
): Promise<string | undefined> {
  const waiting = await db
    .selectFrom('deliveries')
    .select('event_id')
    .where('stream', '=', stream)
    .where('position', '>=', head)
    .where('position', '<=', tail)
    .orderBy('position')
    .execute();
  const ids = waiting.map(({ event_id }) => event_id);
  const firstUnwanted = ids.findIndex((id) => unwanted.has(id));
  if (firstUnwanted < 0) return undefined;
  const staying = ids.filter((id) => !unwanted.has(id));
  const from = head + firstUnwanted;
  await db.deleteFrom('deliveries').where('stream', '=', stream).where('position', '>=', from).execute();
  // Usually empty: events that are sent again on request are older than the events they wait behind.
  const moving = staying.slice(firstUnwanted).map((event_id, index) => ({
    stream,
    position: from + index,
    event_id,
    feed,
  }));
  for (let start = 0; start < moving.length; start += BATCH) {
    await db
      .insertInto('deliveries')
      .values(moving.slice(start, start + BATCH))
      .execute();
  }
  const isHeadGone = ids[0] !== staying[0];
  await db
    .updateTable('streams')
    .set({
      tail: head + staying.length - 1,
      next_attempt_at: staying.length === 0 ? null : isHeadGone ? now : next_attempt_at,
      lease: null,
      ...(isHeadGone && { attempts: 0, first_attempted_at: null }),
    })
    .where('stream', '=', stream)
    .execute();
  return isHeadGone && attempts > 0 ? ids[0] : undefined;
}
