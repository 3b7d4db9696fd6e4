import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { channelKeysOf } from './channels';

/** The figures of a feed's outbox. */
export interface OutboxFigures {
  /** Events not delivered yet. */
  waiting: number;
  deadLetters: number;
  /** Delivered events whose block was orphaned and whose transaction has not been mined again. */
  orphaned: number;
}

/** Number of undelivered events per feed. Feeds without any are left out. */
export async function undeliveredOf(
  db: Kysely<Schema>,
  feeds: readonly string[],
): Promise<{ feed: string; undelivered: number }[]> {
  if (feeds.length === 0) return [];
  const channels = await db
    .selectFrom('feeds')
    .innerJoin('channels', 'channels.feed', 'feeds.id')
    .select(['channels.id', 'feeds.feed'])
    .where('feeds.feed', 'in', feeds)
    .orderBy('feeds.feed')
    .execute();
  if (channels.length === 0) return [];
  const waiting = await waitingByChannel(
    db,
    channels.map(({ id }) => id),
  );
  const byFeed = new Map<string, number>();
  for (const { id, feed } of channels) {
    const undelivered = waiting.get(id) ?? 0;
    if (undelivered > 0) byFeed.set(feed, (byFeed.get(feed) ?? 0) + undelivered);
  }
  return [...byFeed].map(([feed, undelivered]) => ({ feed, undelivered }));
}

/** Counts waiting events, dead letters and orphans. Each count uses an index or a small table. */
export async function outboxFiguresOf(db: Kysely<Schema>, feed: string): Promise<OutboxFigures> {
  const [undelivered, dead, orphans] = await Promise.all([
    undeliveredOf(db, [feed]),
    channelKeysOf(db, [feed]).then((channels) => countDeadLetters(db, channels)),
    db
      .selectFrom('feeds')
      .innerJoin('orphans', 'orphans.feed', 'feeds.id')
      .select((eb) => eb.fn.countAll().as('count'))
      .where('feeds.feed', '=', feed)
      .where('outcome', '=', 'delivered')
      .where('mined_again_in', 'is', null)
      .executeTakeFirst(),
  ]);
  return {
    waiting: undelivered[0]?.undelivered ?? 0,
    deadLetters: dead,
    orphaned: Number(orphans?.count ?? 0),
  };
}

async function countDeadLetters(db: Kysely<Schema>, channels: readonly number[]): Promise<number> {
  if (channels.length === 0) return 0;
  const { count } = await db
    .selectFrom('dead_letters')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('channel', 'in', channels)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/**
 * Number of undelivered events of channels: those that wait, dead letters, and stored events that are still
 * to be enqueued, wanted or not.
 */
export async function undeliveredOfChannels(
  db: Kysely<Schema>,
  channels: readonly number[],
): Promise<number> {
  if (channels.length === 0) return 0;
  const waiting = await waitingByChannel(db, channels);
  const { toFill } = await db
    .selectFrom('channels')
    .innerJoin('events', 'events.feed', 'channels.feed')
    .select((eb) => eb.fn.countAll().as('toFill'))
    .where('channels.id', 'in', channels)
    .where((eb) =>
      eb.or([
        eb('events.block_number', '>', eb.ref('channels.fill_block')),
        eb.and([
          eb('events.block_number', '=', eb.ref('channels.fill_block')),
          eb('events.log_index', '>', eb.ref('channels.fill_index')),
        ]),
      ]),
    )
    .where('events.audience', '=', 'all')
    .where('events.orphaned_at', 'is', null)
    .executeTakeFirstOrThrow();
  const dead = await countDeadLetters(db, channels);
  return [...waiting.values()].reduce((sum, one) => sum + one, dead + Number(toFill));
}

async function waitingByChannel(
  db: Kysely<Schema>,
  channels: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  if (channels.length === 0) return new Map();
  const rows = await db
    .selectFrom('queues')
    .select(['channel', sql<number | string>`sum(tail - head + 1)`.as('undelivered')])
    .where('channel', 'in', channels)
    // Lets SQLite use the index of queues that are not empty.
    .where('next_attempt_at', '>=', 0)
    .groupBy('channel')
    .execute();
  return new Map(rows.map(({ channel, undelivered }) => [channel, Number(undelivered)]));
}
