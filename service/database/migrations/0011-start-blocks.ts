import type { Kysely, Migration } from 'kysely';

/** Adds the block at which a feed was told to begin. It is unknown for earlier feeds. */
export const startBlocks: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('feeds').addColumn('start_block', 'bigint').execute();
  },
};
