import { type Kysely, sql } from 'kysely';
import type { Schema } from '../database/schema';
import type { RegistryName } from '../base/registry-name';
import { channelKeysOf } from './channels';
import { registryOfFeed } from './feeds';

/** The figures of a feed's outbox. */
export interface OutboxFigures {
  registry: RegistryName;
  /** The first block that has not been read. */
  nextBlock: number;
  /** Events not delivered yet. */
  waiting: number;
  deadLetters: number;
  /** Delivered events whose block was orphaned and whose transaction has not been mined again. */
  orphaned: number;
}

/** Counts waiting events, dead letters and orphans. Each count uses an index or a small table. */
export async function outboxFiguresOf(
  db: Kysely<Schema>,
  feeds: readonly string[],
): Promise<OutboxFigures[]> {
  const figures = feeds.map(async (feed) => {
    const [{ nextBlock, orphaned }, counts] = await Promise.all([
      db
        .selectFrom('feeds')
        .leftJoin('orphans', (join) =>
          join
            .onRef('orphans.feed', '=', 'feeds.id')
            .on('outcome', '=', 'delivered')
            .on('mined_again_in', 'is', null),
        )
        .select((eb) => ['next_block as nextBlock', eb.fn.count('orphans.feed').as('orphaned')])
        .where('feeds.feed', '=', feed)
        .groupBy('feeds.id')
        .executeTakeFirstOrThrow(),
      channelKeysOf(db, [feed]).then((channels) => undeliveredIn(db, channels)),
    ]);
    return { registry: registryOfFeed(feed), nextBlock, ...counts, orphaned: Number(orphaned) };
  });
  return Promise.all(figures);
}

async function undeliveredIn(
  db: Kysely<Schema>,
  channels: readonly number[],
): Promise<{ waiting: number; deadLetters: number }> {
  if (channels.length === 0) return { waiting: 0, deadLetters: 0 };
  const { waiting } = await db
    .selectFrom('queues')
    .select(sql<number | string | null>`sum(tail - head + 1)`.as('waiting'))
    .where('channel', 'in', channels)
    // Lets SQLite use the index of queues that are not empty.
    .where('next_attempt_at', '>=', 0)
    .executeTakeFirstOrThrow();
  const { dead } = await db
    .selectFrom('dead_letters')
    .select((eb) => eb.fn.countAll().as('dead'))
    .where('channel', 'in', channels)
    .executeTakeFirstOrThrow();
  return { waiting: Number(waiting), deadLetters: Number(dead) };
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
