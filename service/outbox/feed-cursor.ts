import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';

/** Where a feed goes on reading. */
export interface FeedCursor {
  nextBlock: number;
  lastBlockHash: string | undefined;
}

/** The stored cursor of a feed; a feed seen for the first time begins at `startBlock`. */
export async function openFeed(db: Kysely<Schema>, feed: string, startBlock: number): Promise<FeedCursor> {
  await db
    .insertInto('feeds')
    .values({ feed, next_block: startBlock, last_block_hash: null })
    .onConflict((conflict) => conflict.column('feed').doNothing())
    .execute();
  const row = await db.selectFrom('feeds').selectAll().where('feed', '=', feed).executeTakeFirstOrThrow();
  return { nextBlock: row.next_block, lastBlockHash: row.last_block_hash ?? undefined };
}
