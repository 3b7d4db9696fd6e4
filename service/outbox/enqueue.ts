import { sql, type Transaction } from 'kysely';
import type { Schema } from '../database/schema';

/** An event, and one of the channels that it is for. */
export interface Enqueued {
  channel: number;
  token: number;
  event: number;
}

/** Rows per statement. SQLite blocks the event loop, and PostgreSQL takes at most 65,535 parameters. */
const BATCH = 2_000;

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
  for (let from = 0; from < inOrder.length; from += BATCH) {
    const tails = await db
      .insertInto('queues')
      .values(
        inOrder.slice(from, from + BATCH).map(({ channel, token, events }) => ({
          channel,
          token,
          head: 1,
          tail: events.length,
          attempts: 0,
          next_attempt_at: now,
        })),
      )
      .onConflict((conflict) =>
        conflict.columns(['channel', 'token']).doUpdateSet((eb) => ({
          tail: sql<number>`queues.tail + excluded.tail`,
          next_attempt_at: eb.fn.coalesce('queues.next_attempt_at', 'excluded.next_attempt_at'),
        })),
      )
      .returning(['channel', 'token', 'tail'])
      .execute();
    const deliveries = tails.flatMap(({ channel, token, tail }) => {
      const events = queues.get(`${channel}/${token}`)?.events ?? [];
      return events.map((event, index) => ({
        channel,
        token,
        position: tail - events.length + 1 + index,
        event,
      }));
    });
    for (let start = 0; start < deliveries.length; start += BATCH)
      await db
        .insertInto('deliveries')
        .values(deliveries.slice(start, start + BATCH))
        .execute();
  }
}
