import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';

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
  const rows = await db
    .selectFrom('streams')
    .select(['feed', sql<number | string>`sum(tail - head + 1)`.as('undelivered')])
    .where('feed', 'in', feeds)
    .where('next_attempt_at', 'is not', null)
    .groupBy('feed')
    .orderBy('feed')
    .execute();
  return rows.map(({ feed, undelivered }) => ({ feed, undelivered: Number(undelivered) }));
}

/** Counts waiting events, dead letters and orphans. Each count uses an index or a small table. */
export async function outboxFiguresOf(db: Kysely<Schema>, feed: string): Promise<OutboxFigures> {
  const [streams, dead, orphans] = await Promise.all([
    db
      .selectFrom('streams')
      .select(sql<number | string | null>`sum(tail - head + 1)`.as('waiting'))
      .where('feed', '=', feed)
      .where('next_attempt_at', 'is not', null)
      .executeTakeFirst(),
    db
      .selectFrom('dead_letters')
      .select((eb) => eb.fn.countAll().as('count'))
      .where('feed', '=', feed)
      .executeTakeFirst(),
    db
      .selectFrom('orphans')
      .select((eb) => eb.fn.countAll().as('count'))
      .where('feed', '=', feed)
      .where('outcome', '=', 'delivered')
      .where('mined_again_in', 'is', null)
      .executeTakeFirst(),
  ]);
  return {
    waiting: Number(streams?.waiting ?? 0),
    deadLetters: Number(dead?.count ?? 0),
    orphaned: Number(orphans?.count ?? 0),
  };
}
