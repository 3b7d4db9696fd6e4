import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import { ServiceError } from '../base/errors';
import type { KeptBlock, OpenFeed } from './feed-cursor';

/**
 * Moves a feed's cursor and releases its deliveries; without `to`, both stay. Every transaction that writes
 * what was read calls this first: it locks the feed's row, so that these transactions run one at a time.
 *
 * @throws ServiceError CURSOR_MOVED (retryable: the feed is opened again) if another reader took over.
 */
export async function moveCursor(
  db: Transaction<Schema>,
  { feed, epoch }: OpenFeed,
  to?: { nextBlock: number; lastBlockHash: string | undefined },
): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('feeds')
    .set(to ? { next_block: to.nextBlock, last_block_hash: to.lastBlockHash ?? null, held: 0 } : { epoch })
    .where('feed', '=', feed)
    .where('epoch', '=', epoch)
    .executeTakeFirst();
  if (numUpdatedRows === 1n) return;
  const message = `Feed ${feed} is now read by another process.`;
  throw new ServiceError('CURSOR_MOVED', message, { retryable: true });
}

/** Stores the hashes of the blocks and deletes those of blocks before `oldest`. */
export async function keepBlocks(
  db: Transaction<Schema>,
  feed: number,
  blocks: readonly KeptBlock[],
  oldest: number,
): Promise<void> {
  if (blocks.length > 0) {
    const rows = blocks.map(({ number, hash }) => ({ feed, number, hash: hash ?? null }));
    await db
      .insertInto('blocks')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['feed', 'number']).doUpdateSet((eb) => ({ hash: eb.ref('excluded.hash') })),
      )
      .execute();
  }
  await db.deleteFrom('blocks').where('feed', '=', feed).where('number', '<', oldest).execute();
}
