import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { registryOfFeed } from './find-feeds';
import { idOfBytes } from './stored-ids';

/** Selects the events that wait in channels, with their queues. */
export function queuedEvents(db: Kysely<Schema>, channels: readonly number[]) {
  return db
    .selectFrom('queues')
    .innerJoin('deliveries', (join) =>
      join
        .onRef('deliveries.channel', '=', 'queues.channel')
        .onRef('deliveries.token', '=', 'queues.token')
        .onRef('deliveries.position', '>=', 'queues.head'),
    )
    .innerJoin('events', 'events.id', 'deliveries.event')
    .innerJoin('tokens', 'tokens.id', 'queues.token')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .select([
      'feeds.feed',
      'events.event_id',
      'events.type',
      'tokens.token_id',
      'queues.attempts',
      'queues.next_attempt_at as nextAttemptAt',
    ])
    .where('queues.channel', 'in', channels)
    .where('queues.next_attempt_at', 'is not', null);
}

/** Selects the dead letters of channels. */
export function deadEvents(db: Kysely<Schema>, channels: readonly number[]) {
  return db
    .selectFrom('dead_letters')
    .innerJoin('events', 'events.id', 'dead_letters.event')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .select([
      'feeds.feed',
      'events.event_id',
      'events.type',
      'tokens.token_id',
      'dead_letters.attempts',
      'dead_letters.status',
      'dead_letters.error',
    ])
    .where('dead_letters.channel', 'in', channels);
}

/** The stored names of an event in the form of its CloudEvent. */
export function namesOf(row: { feed: string; event_id: Uint8Array | ArrayBuffer; token_id: string }): {
  registry: string;
  eventId: string;
  tokenId: string;
} {
  return {
    registry: registryOfFeed(row.feed),
    eventId: idOfBytes(row.event_id),
    // Events of the registry itself carry token id 0.
    tokenId: row.token_id === '' ? '0' : row.token_id,
  };
}
