import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import type { RegistryName } from '../base/registry-name';
import { channelKeysOf } from './channels';
import { registryOfFeed } from './feeds';

/** The figures of a feed's outbox. */
export interface OutboxFigures {
  registry: RegistryName;
  /** Events not delivered yet. */
  waiting: number;
  deadLetters: number;
  /** Delivered events whose block was orphaned and whose transaction has not been mined again. */
  orphaned: number;
}

/** The first block that has not been read of each of these feeds, and the number of its waiting events. */
export async function feedFiguresOf(
  db: Kysely<Schema>,
  feeds: readonly string[],
): Promise<{ feed: string; nextBlock: number; undelivered: number }[]> {
  if (feeds.length === 0) return [];
  const channels = await db
    .selectFrom('feeds')
    .leftJoin('channels', 'channels.feed', 'feeds.id')
    .select(['channels.id', 'feeds.feed', 'feeds.next_block as nextBlock'])
    .where('feeds.feed', 'in', feeds)
    .orderBy('feeds.feed')
    .execute();
  const waiting = await waitingByChannel(
    db,
    channels.flatMap(({ id }) => id ?? []),
  );
  const figures = new Map<string, { feed: string; nextBlock: number; undelivered: number }>();
  for (const { id, feed, nextBlock } of channels) {
    const before = figures.get(feed)?.undelivered ?? 0;
    figures.set(feed, { feed, nextBlock, undelivered: before + (waiting.get(id ?? 0) ?? 0) });
  }
  return [...figures.values()];
}

/** Counts waiting events, dead letters and orphans. Each count uses an index or a small table. */
export async function outboxFiguresOf(db: Kysely<Schema>, feed: string): Promise<OutboxFigures> {
  const [counts, { orphaned }] = await Promise.all([
    channelKeysOf(db, [feed]).then((channels) => undeliveredIn(db, channels)),
    db
      .selectFrom('feeds')
      .innerJoin('orphans', 'orphans.feed', 'feeds.id')
      .select((eb) => eb.fn.countAll().as('orphaned'))
      .where('feeds.feed', '=', feed)
      .where('outcome', '=', 'delivered')
      .where('mined_again_in', 'is', null)
      .executeTakeFirstOrThrow(),
  ]);
  return { registry: registryOfFeed(feed), ...counts, orphaned: Number(orphaned) };
}

async function undeliveredIn(
  db: Kysely<Schema>,
  channels: readonly number[],
): Promise<{ waiting: number; deadLetters: number }> {
  if (channels.length === 0) return { waiting: 0, deadLetters: 0 };
  const waiting = await waitingByChannel(db, channels);
  const { dead } = await db
    .selectFrom('dead_letters')
    .select((eb) => eb.fn.countAll().as('dead'))
    .where('channel', 'in', channels)
    .executeTakeFirstOrThrow();
  return { waiting: [...waiting.values()].reduce((sum, one) => sum + one, 0), deadLetters: Number(dead) };
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
  const { waiting, deadLetters } = await undeliveredIn(db, channels);
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
  return waiting + deadLetters + Number(toFill);
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
