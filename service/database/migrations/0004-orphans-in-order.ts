import type { Kysely, Migration } from 'kysely';

/**
 * The index of withdrawn events in the order in which they are asked for: SQLite took another index for the
 * old one's question, and read all events of a feed for each range of blocks.
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
