import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { registryOfFeed } from './find-feeds';
import { bytesOfId, isEventId } from './stored-ids';

/** A recorded attempt. */
export interface Attempt {
  attempt: number;
  attemptedAt: number;
  status: number | null;
  error: string | null;
  milliseconds: number;
}

/** An event with its state and its attempts. */
export interface EventHistory {
  registry: string;
  subscription: string;
  eventId: string;
  state: 'waiting' | 'delivered' | 'dead' | 'orphaned';
  body: string;
  attempts: Attempt[];
}

/** The event's history, once for each channel that it was enqueued for. */
export async function historyOf(db: Kysely<Schema>, eventId: string): Promise<EventHistory[]> {
  if (!isEventId(eventId)) return [];
  const rows = await db
    .selectFrom('events')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .innerJoin('channels', 'channels.feed', 'feeds.id')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select([
      'events.id',
      'events.token',
      'events.body',
      'events.orphaned_at',
      'feeds.feed',
      'channels.id as channel',
      'subscriptions.name as subscription',
    ])
    .where('events.event_id', '=', bytesOfId(eventId))
    .orderBy('channels.id')
    .execute();
  const histories = await Promise.all(
    rows.map(async ({ id, token, body, orphaned_at, feed, channel, subscription }) => {
      const attempts = await db
        .selectFrom('attempts')
        .select(['attempt', 'attempted_at as attemptedAt', 'status', 'error', 'milliseconds'])
        .where('event', '=', id)
        .where('channel', '=', channel)
        .orderBy('attempted_at')
        .execute();
      const dead = await db
        .selectFrom('dead_letters')
        .select('event')
        .where('channel', '=', channel)
        .where('event', '=', id)
        .executeTakeFirst();
      const waiting = await waitingAmong(db, channel, [{ id, token }]);
      if (attempts.length === 0 && waiting.size === 0 && orphaned_at === null) return [];
      const state: EventHistory['state'] = dead
        ? 'dead'
        : waiting.size > 0
          ? 'waiting'
          : orphaned_at !== null
            ? 'orphaned'
            : 'delivered';
      return { registry: registryOfFeed(feed), subscription, eventId, state, body, attempts };
    }),
  );
  return histories.flat();
}

/** The keys of those events that wait in the channel. */
export async function waitingAmong(
  db: Kysely<Schema>,
  channel: number,
  events: readonly { id: number; token: number }[],
): Promise<ReadonlySet<number>> {
  if (events.length === 0) return new Set();
  const rows = await db
    .selectFrom('deliveries')
    .innerJoin('queues', (join) =>
      join
        .onRef('queues.channel', '=', 'deliveries.channel')
        .onRef('queues.token', '=', 'deliveries.token')
        .onRef('deliveries.position', '>=', 'queues.head'),
    )
    .select('deliveries.event')
    .where('deliveries.channel', '=', channel)
    .where('deliveries.token', 'in', [...new Set(events.map(({ token }) => token))])
    .where(
      'deliveries.event',
      'in',
      events.map(({ id }) => id),
    )
    .execute();
  return new Set(rows.map(({ event }) => event));
}
