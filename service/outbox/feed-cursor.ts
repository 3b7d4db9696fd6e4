import type { Kysely, Selectable } from 'kysely';
import type { FeedsTable, Schema } from '../database/schema';

/** A block that was read. */
export interface KeptBlock {
  number: number;
  /** Undefined: the block before the first that was read, whichever it is. */
  hash: string | undefined;
}

/** Where a feed goes on reading, and by what a reorganisation is recognised. */
export interface FeedCursor {
  /** The first block that has not been read. */
  nextBlock: number;
  /**
   * The last block read and earlier ones down to the finality depth, ascending. Between them no block has
   * events.
   */
  kept: KeptBlock[];
}

/** A feed that this process alone may write. */
export interface OpenFeed {
  feed: string;
  /** Refuses what an earlier reader still writes. */
  epoch: number;
  cursor: FeedCursor;
}

/**
 * Begins reading a feed where it was left; a feed seen for the first time begins at `startBlock`. Its
 * deliveries are held until `releaseFeed` or the first range says that what was read is still on the chain.
 */
export async function openFeed(
  db: Kysely<Schema>,
  feed: string,
  startBlock: number,
  now: number,
): Promise<OpenFeed> {
  const row = await db
    .insertInto('feeds')
    .values({ feed, next_block: startBlock, last_block_hash: null, epoch: 1, held: 1, opened_at: now })
    .onConflict((conflict) =>
      conflict
        .column('feed')
        .doUpdateSet((eb) => ({ epoch: eb('feeds.epoch', '+', 1), held: 1, opened_at: now })),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  const kept = await keptBlocks(db, feed);
  if (kept.length === 0) kept.push(await keepFirst(db, row));
  return { feed, epoch: row.epoch, cursor: { nextBlock: row.next_block, kept } };
}

async function keptBlocks(db: Kysely<Schema>, feed: string): Promise<KeptBlock[]> {
  const rows = await db
    .selectFrom('blocks')
    .select(['number', 'hash'])
    .where('feed', '=', feed)
    .orderBy('number')
    .execute();
  return rows.map(({ number, hash }) => ({ number, hash: hash ?? undefined }));
}

/**
 * A feed that has kept nothing yet knows the block that it read last, if it has read any; else where it
 * began.
 */
async function keepFirst(
  db: Kysely<Schema>,
  { feed, next_block, last_block_hash: hash }: Selectable<FeedsTable>,
): Promise<KeptBlock> {
  const number = next_block - 1;
  await db.insertInto('blocks').values({ feed, number, hash }).execute();
  return { number, hash: hash ?? undefined };
}

/** What was read is still on the chain: deliveries may go on. */
export async function releaseFeed(db: Kysely<Schema>, { feed, epoch }: OpenFeed): Promise<void> {
  await setHeld(db, feed, epoch, 0);
}

/** Claims nothing more of the feed, in no process, until it is rewound or released. */
export async function holdFeed(db: Kysely<Schema>, { feed, epoch }: OpenFeed): Promise<void> {
  await setHeld(db, feed, epoch, 1);
}

async function setHeld(db: Kysely<Schema>, feed: string, epoch: number, held: number): Promise<void> {
  await db.updateTable('feeds').set({ held }).where('feed', '=', feed).where('epoch', '=', epoch).execute();
}
