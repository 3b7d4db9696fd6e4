import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { deliveryStatesOf, type Attempt, type DeliveryOutcome } from './delivery-states';
import { registryOfFeed } from './find-feeds';
import { bytesOfId, isEventId } from './stored-ids';

/** An event with its state and its attempts. */
export interface EventHistory {
  registry: string;
  subscription: string;
  eventId: string;
  state: DeliveryOutcome;
  body: string;
  attempts: Attempt[];
}

/** The event's history, once for each channel that it was enqueued for. */
export async function historyOf(db: Kysely<Schema>, eventId: string): Promise<EventHistory[]> {
  if (!isEventId(eventId)) return [];
  const rows = await db
    .selectFrom('events')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .select([
      'events.id',
      'events.token',
      'events.body',
      'events.orphaned_at as orphanedAt',
      'events.feed',
      'feeds.feed as feedName',
    ])
    .where('events.event_id', '=', bytesOfId(eventId))
    .execute();
  const histories: { channel: number; history: EventHistory }[] = [];
  for (const { feed, feedName, body, ...event } of rows)
    for (const { channel, subscription, state, attempts } of await deliveryStatesOf(db, feed, [event])) {
      const registry = registryOfFeed(feedName);
      histories.push({ channel, history: { registry, subscription, eventId, state, body, attempts } });
    }
  histories.sort((left, right) => left.channel - right.channel);
  return histories.map(({ history }) => history);
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
