import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { channelKeysOf } from '../outbox/channels';
import { findFeeds } from '../outbox/find-feeds';

/** Keys of events that may be in a list, the newest first. */
export interface Candidates {
  ids: number[];
  /** Whether there are more that were not looked at. */
  hasMore: boolean;
}

/** Channels that are looked at. One that has nothing does not count. */
const MOST_CHANNELS = 200;

/** Events that were given up: the newest of each channel. */
export async function deadCandidates(
  db: Kysely<Schema>,
  { subscription, limit }: { subscription: string | undefined; limit: number },
  most: number,
): Promise<Candidates> {
  const channels = await channelsWith(db, subscription, 'dead_letters');
  const ids = new Set<number>();
  for (const channel of channels.slice(0, MOST_CHANNELS)) {
    const rows = await db
      .selectFrom('dead_letters')
      .select('event')
      .where('channel', '=', channel)
      .orderBy('event', 'desc')
      .limit(limit + 1)
      .execute();
    for (const { event } of rows) ids.add(event);
  }
  return newest(ids, most, channels.length > MOST_CHANNELS);
}

/**
 * Events that wait: those of the queues of each channel that are due first, or last for those that failed:
 * an event whose attempt failed is due later than one that waits for its first.
 */
export async function queuedCandidates(
  db: Kysely<Schema>,
  {
    subscription,
    state,
    limit,
  }: { subscription: string | undefined; state: string | undefined; limit: number },
  most: number,
): Promise<Candidates> {
  const direction = state === 'failed' ? 'desc' : 'asc';
  const channels = await channelsWith(db, subscription, 'queues');
  const ids = new Set<number>();
  let hasMore = channels.length > MOST_CHANNELS;
  for (const channel of channels.slice(0, MOST_CHANNELS)) {
    const rows = await db
      .selectFrom((eb) =>
        eb
          .selectFrom('queues')
          .select(['channel', 'token', 'head', 'next_attempt_at'])
          .where('channel', '=', channel)
          .where('next_attempt_at', 'is not', null)
          .orderBy('next_attempt_at', direction)
          .limit(limit + 1)
          .as('due'),
      )
      .innerJoin('deliveries', (join) =>
        join
          .onRef('deliveries.channel', '=', 'due.channel')
          .onRef('deliveries.token', '=', 'due.token')
          .onRef('deliveries.position', state === 'failed' ? '=' : '>=', 'due.head'),
      )
      .select('deliveries.event')
      .orderBy('due.next_attempt_at', direction)
      .orderBy('deliveries.position')
      .limit(most)
      .execute();
    for (const { event } of rows) ids.add(event);
    hasMore ||= rows.length > limit;
  }
  return newest(ids, most, hasMore);
}

function newest(ids: ReadonlySet<number>, most: number, hasMore: boolean): Candidates {
  const sorted = [...ids].sort((left, right) => right - left);
  return { ids: sorted.slice(0, most), hasMore: hasMore || sorted.length > most };
}

/** The channels of the current feeds that have such rows. Each is found with a key. */
async function channelsWith(
  db: Kysely<Schema>,
  subscription: string | undefined,
  table: 'queues' | 'dead_letters',
): Promise<number[]> {
  const channels = await channelKeysOf(db, await findFeeds(db), subscription);
  if (channels.length === 0) return [];
  const rows = await db
    .selectFrom('channels')
    .select('channels.id')
    .where('channels.id', 'in', channels)
    .where((eb) =>
      eb.exists(
        table === 'queues'
          ? eb
              .selectFrom('queues')
              .select('queues.channel')
              .whereRef('queues.channel', '=', 'channels.id')
              .where('queues.next_attempt_at', 'is not', null)
          : eb
              .selectFrom('dead_letters')
              .select('dead_letters.channel')
              .whereRef('dead_letters.channel', '=', 'channels.id'),
      ),
    )
    .orderBy('channels.id')
    .execute();
  return rows.map(({ id }) => id);
}
