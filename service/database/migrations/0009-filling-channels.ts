import type { Kysely, Migration } from 'kysely';

/** Finds the channels that are being filled without reading the others: they are few. */
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
