import type { Kysely, Selectable, Transaction, Updateable } from 'kysely';
import { ServiceError } from '../base/errors';
import type { RegistryName } from '../base/registry-name';
import { compiled } from '../database/compiled';
import type { FeedsTable, Schema } from '../database/schema';
import { OPERATIONS } from '../events/conditions';
import { addChannels } from './channels';

/**
 * The current feed of each registry, or of the one given. A local chain that was restarted leaves the feed of
 * its predecessor behind; nothing is delivered from that feed any more.
 *
 * @param registry address, or chain id and address (`80002:0x…`), in any case.
 */
export async function findFeeds(db: Kysely<Schema>, registry?: string): Promise<string[]> {
  const feeds = await findAllFeeds(db, registry);
  return [...new Map(feeds.map((feed) => [registryOfFeed(feed), feed])).values()];
}

/** Like `findFeeds`, with the feed of operational events. `origin`: only this registry, or `operations`. */
export async function findDeliveredFeeds(db: Kysely<Schema>, origin?: string): Promise<string[]> {
  if (origin === OPERATIONS) return [OPERATIONS];
  const feeds = await findFeeds(db, origin);
  return origin === undefined ? [...feeds, OPERATIONS] : feeds;
}

/** Like `findFeeds`, with the feeds that were left behind. */
export async function findAllFeeds(db: Kysely<Schema>, registry?: string): Promise<string[]> {
  const rows = await db
    .selectFrom('feeds')
    .select('feed')
    .where('feed', '<>', OPERATIONS)
    .orderBy('opened_at')
    .orderBy('feed')
    .execute();
  const wanted = registry?.toLowerCase();
  return rows.flatMap(({ feed }) => {
    const name = registryOfFeed(feed);
    return wanted === undefined || name === wanted || name.endsWith(`:${wanted}`) ? feed : [];
  });
}

/** The registry of a feed; `operations` for the feed of operational events, which no chain writes. */
export function registryOfFeed(feed: string): RegistryName {
  return feed.split(':').slice(0, 2).join(':') as RegistryName;
}

/** A block whose hash is kept, to recognise a reorganisation. */
export interface KeptBlock {
  number: number;
  /** Undefined for the block before the first one read: its hash is not known. */
  hash: string | undefined;
}

/** The position of a feed, and the blocks by which a reorganisation is recognised. */
export interface FeedCursor {
  /** The first block that has not been read. */
  nextBlock: number;
  /**
   * The last block read and earlier ones back to the finality depth, ascending. Blocks between them have no
   * events.
   */
  kept: KeptBlock[];
}

/** A feed that only this process may write. */
export interface OpenFeed {
  feed: string;
  /** Key of the feed's row. */
  id: number;
  /** Incremented whenever the feed is opened. Writes with an older epoch are refused. */
  epoch: number;
}

/**
 * Opens a feed at its stored cursor. A new feed starts at `startBlock`, and so does one that has recorded no
 * events and was told to start elsewhere before. Its deliveries are held until `setHeld`, `recordRange` or
 * `rewindFeed` has released them: the blocks read earlier have then been compared with the chain.
 */
export async function openFeed(
  db: Kysely<Schema>,
  feed: string,
  startBlock: number,
  now: number,
): Promise<OpenFeed & { cursor: FeedCursor }> {
  const start = { next_block: startBlock, start_block: startBlock, last_block_hash: null };
  const opened = await db
    .insertInto('feeds')
    .values({ feed, ...start, epoch: 1, held: 1, opened_at: now })
    .onConflict((conflict) =>
      conflict
        .column('feed')
        .doUpdateSet((eb) => ({ epoch: eb('feeds.epoch', '+', 1), held: 1, opened_at: now })),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
  const isTold = opened.start_block === startBlock;
  const row = isTold || (await hasRecorded(db, opened)) ? opened : { ...opened, ...start };
  if (row !== opened) {
    await db.deleteFrom('blocks').where('feed', '=', row.id).execute();
    await db.updateTable('feeds').set(start).where('id', '=', row.id).execute();
  }
  await addChannels(db, now);
  const rows = await db
    .selectFrom('blocks')
    .select(['number', 'hash'])
    .where('feed', '=', row.id)
    .orderBy('number')
    .execute();
  const kept = rows.map(({ number, hash }) => ({ number, hash: hash ?? undefined }));
  if (kept.length === 0) {
    // The last block that an early version read or, if none was read, the one before the start.
    kept.push({ number: row.next_block - 1, hash: row.last_block_hash ?? undefined });
    await keepBlocks(db, row.id, kept, -1);
  }
  return { feed, id: row.id, epoch: row.epoch, cursor: { nextBlock: row.next_block, kept } };
}

/** Whether the feed has, or had, events. If it is not known where it began, any block read counts. */
async function hasRecorded(db: Kysely<Schema>, feed: Selectable<FeedsTable>): Promise<boolean> {
  if (feed.purged_up_to !== null || (feed.start_block === null && feed.last_block_hash !== null)) return true;
  const event = await db.selectFrom('events').select('id').where('feed', '=', feed.id).limit(1).execute();
  return event.length > 0;
}

/**
 * Holds a feed (1): no process claims its deliveries until it is rewound or released. Or releases it (0): the
 * blocks read so far are still on the chain.
 */
export async function setHeld(db: Kysely<Schema>, { feed, epoch }: OpenFeed, held: 0 | 1): Promise<void> {
  await db.updateTable('feeds').set({ held }).where('feed', '=', feed).where('epoch', '=', epoch).execute();
}

const updateFeed = compiled(
  (db, { set, feed, epoch }: { set: Updateable<FeedsTable>; feed: string; epoch: number }) =>
    db.updateTable('feeds').set(set).where('feed', '=', feed).where('epoch', '=', epoch),
);

/**
 * Moves a feed's cursor and releases its deliveries; without `nextBlock`, both stay. Every transaction that
 * writes what was read calls this first: it locks the feed's row, so that they run one at a time.
 *
 * @throws ServiceError CURSOR_MOVED (retryable: the feed is opened again) if another reader took over.
 */
export async function moveCursor(
  db: Transaction<Schema>,
  { feed, epoch }: OpenFeed,
  nextBlock?: number,
): Promise<void> {
  const set = nextBlock === undefined ? { epoch } : { next_block: nextBlock, held: 0 };
  const { numAffectedRows } = await updateFeed(db, { set, feed, epoch });
  if (numAffectedRows === 1n) return;
  const message = `Feed ${feed} is now read by another process.`;
  throw new ServiceError('CURSOR_MOVED', message);
}

/**
 * Locks a feed's row. Every transaction that puts events into several of its queues, or takes them out, calls
 * this first. Returns how far its old events were purged.
 */
export async function lockFeed(
  db: Transaction<Schema>,
  feed: number,
): Promise<Pick<Selectable<FeedsTable>, 'purged_up_to' | 'purged_position'>> {
  return db
    .updateTable('feeds')
    .set((eb) => ({ held: eb.ref('held') }))
    .where('id', '=', feed)
    .returning(['purged_up_to', 'purged_position'])
    .executeTakeFirstOrThrow();
}

/** Stores the hashes of the blocks and deletes those of blocks before `oldest`. */
export async function keepBlocks(
  db: Kysely<Schema>,
  feed: number,
  blocks: readonly KeptBlock[],
  oldest: number,
): Promise<void> {
  if (blocks.length > 0) {
    const rows = blocks.map(({ number, hash }) => ({ feed, number, hash: hash ?? null }));
    await insertBlocks(db, { rows });
  }
  await deleteBlocks(db, { feed, oldest });
}

const insertBlocks = compiled(
  (db, { rows }: { rows: { feed: number; number: number; hash: string | null }[] }) =>
    db
      .insertInto('blocks')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['feed', 'number']).doUpdateSet((eb) => ({ hash: eb.ref('excluded.hash') })),
      ),
);

const deleteBlocks = compiled((db, { feed, oldest }: { feed: number; oldest: number }) =>
  db.deleteFrom('blocks').where('feed', '=', feed).where('number', '<', oldest),
);
