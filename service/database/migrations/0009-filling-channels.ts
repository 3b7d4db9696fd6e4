import type { Kysely, Migration } from 'kysely';

/** Adds an index that finds the few channels that are being filled. */
export const fillingChannels: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createIndex('channels_filling')
      .on('channels')
      .column('feed')
      .where('fill_block' as never, 'is not', null)
      .execute();
  },
};
