import type { Kysely, Migration } from 'kysely';

/**
 * Replaces the index of orphaned events by one in query order. SQLite did not use the old one and read all
 * events of a feed for each range of blocks.
 */
export const orphansInOrder: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.dropIndex('events_orphaned').execute();
    await db.schema
      .createIndex('events_orphaned')
      .on('events')
      .columns(['feed', 'log_index'])
      .where('orphaned_at' as never, 'is not', null)
      .execute();
  },
};
