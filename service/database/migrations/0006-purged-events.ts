import type { Kysely, Migration } from 'kysely';

/**
 * Records up to which block a feed's events may have been purged. Adds an index in the order of purging;
 * without it each batch sorts all events.
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
