import type { Selectable, Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { QueuesTable, Schema } from '../database/schema';

/** Rows per statement: both engines limit the parameters. */
const BATCH = 1_000;

/** A token queue as it is stored. */
type Queue = Selectable<QueuesTable>;

/**
 * Reads the queues of tokens, in the order of their keys. On PostgreSQL they are locked until the transaction
 * ends.
 */
export async function lockQueues(
  { engine }: Pick<Database, 'engine'>,
  db: Transaction<Schema>,
  feed: number,
  tokens: readonly number[],
): Promise<Queue[]> {
  const channels = await db
    .selectFrom('channels')
    .select('id')
    .where('feed', '=', feed)
    .orderBy('id')
    .execute();
  const inOrder = [...tokens].sort((left, right) => left - right);
  const locked: Queue[] = [];
  for (const { id: channel } of channels)
    for (let from = 0; from < inOrder.length; from += BATCH)
      locked.push(
        ...(await db
          .selectFrom('queues')
          .selectAll()
          .where('channel', '=', channel)
          .where('token', 'in', inOrder.slice(from, from + BATCH))
          .orderBy('token')
          .$if(engine === 'postgres', (query) => query.forUpdate())
          .execute()),
      );
  return locked;
}

/** Whether events of the queue are being sent. */
export function isBeingSent({ lease, next_attempt_at }: Queue, now: number): boolean {
  return lease !== null && (next_attempt_at ?? 0) > now;
}

/**
 * Removes events from a queue that has no delivery under way. The remaining events move up in order.
 *
 * @returns the removed events of which an attempt may have begun without being recorded, because the process
 *   died during it.
 */
export async function removeFromQueue(
  db: Transaction<Schema>,
  queue: Queue,
  unwanted: ReadonlySet<number>,
  now: number,
): Promise<number[]> {
  const { channel, token, head, tail, attempts, next_attempt_at, lease, claimed_to } = queue;
  if (tail < head) return [];
  const sentTo = lease === null ? queue.sent_to : Math.max(queue.sent_to, claimed_to ?? 0);
  const waiting = await db
    .selectFrom('deliveries')
    .select(['position', 'event'])
    .where('channel', '=', channel)
    .where('token', '=', token)
    .where('position', '>=', head)
    .where('position', '<=', tail)
    .orderBy('position')
    .execute();
  const firstUnwanted = waiting.findIndex(({ event }) => unwanted.has(event));
  if (firstUnwanted < 0) return [];
  const maySent = (position: number): boolean => position <= sentTo || (position === head && attempts > 0);
  const removed = waiting.filter(({ event }) => unwanted.has(event));
  const cutOff = removed.filter(({ position }) => maySent(position));
  const from = head + firstUnwanted;
  await db
    .deleteFrom('deliveries')
    .where('channel', '=', channel)
    .where('token', '=', token)
    .where('position', '>=', from)
    .execute();
  // Usually empty: events that are sent again on request are older than the events they wait behind.
  const moving = waiting
    .slice(firstUnwanted)
    .filter(({ event }) => !unwanted.has(event))
    .map(({ event }, index) => ({ channel, token, position: from + index, event }));
  for (let start = 0; start < moving.length; start += BATCH)
    await db
      .insertInto('deliveries')
      .values(moving.slice(start, start + BATCH))
      .execute();
  const isHeadGone = firstUnwanted === 0;
  const newTail = tail - removed.length;
  await db
    .updateTable('queues')
    .set({
      tail: newTail,
      next_attempt_at: newTail < head ? null : isHeadGone ? now : next_attempt_at,
      lease: null,
      claimed_to: null,
      sent_to: sentTo - removed.filter(({ position }) => position <= sentTo).length,
      ...(isHeadGone && { attempts: 0, first_attempted_at: null }),
    })
    .where('channel', '=', channel)
    .where('token', '=', token)
    .execute();
  return cutOff.map(({ event }) => event);
}
