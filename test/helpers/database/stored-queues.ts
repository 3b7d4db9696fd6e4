import type { Kysely } from 'kysely';
import type { Schema } from '../../../service/database/schema';
import { registryOfFeed } from '../../../service/outbox/feeds';
import { idOfBytes, waitingDeliveries } from '../../../service/outbox/stored-events';

/** The head of each queue that is not empty, by its due time. `waiting`: the events in the queue. */
export async function headsOfQueues(db: Kysely<Schema>, feeds: string[]) {
  const rows = await waitingDeliveries(db)
    .innerJoin('events', 'events.id', 'deliveries.event')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .innerJoin('tokens', 'tokens.id', 'queues.token')
    .innerJoin('channels', 'channels.id', 'queues.channel')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select(['feeds.feed', 'events.event_id', 'events.type', 'queues.attempts', 'queues.head', 'queues.tail'])
    .select(['queues.next_attempt_at as nextAttemptAt', 'tokens.token_id as tokenId'])
    .select('subscriptions.name as subscription')
    .where('feeds.feed', 'in', feeds)
    .whereRef('deliveries.position', '=', 'queues.head')
    .orderBy('queues.next_attempt_at')
    .execute();
  return rows.map(({ feed, event_id, head, tail, ...row }) => ({
    registry: registryOfFeed(feed),
    eventId: idOfBytes(event_id),
    waiting: tail - head + 1,
    ...row,
  }));
}

/** The dead letters, the oldest first. */
export async function storedLetters(db: Kysely<Schema>, feeds: string[]) {
  const rows = await db
    .selectFrom('dead_letters')
    .innerJoin('events', 'events.id', 'dead_letters.event')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .select(['events.event_id', 'events.type', 'events.body', 'dead_letters.died_at as diedAt'])
    .select('dead_letters.attempts')
    .where('feeds.feed', 'in', feeds)
    .orderBy('dead_letters.died_at')
    .execute();
  return rows.map(({ event_id, ...row }) => ({ eventId: idOfBytes(event_id), ...row }));
}
