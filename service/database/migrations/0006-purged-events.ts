import type { Kysely, Migration } from 'kysely';

/**
 * Up to which block the events of a feed may have been removed; and an index in the order in which they are
 * looked through for that, or else each batch sorts all of them.
 */
export const purgedEvents: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('feeds').addColumn('purged_up_to', 'bigint').execute();
    await db.schema.dropIndex('events_by_block').execute();
    await db.schema
      .createIndex('events_by_block')
      .on('events')
      .columns(['feed', 'block_number', 'event_id'])
      .execute();
  },
};
