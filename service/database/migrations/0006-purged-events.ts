import type { Kysely, Migration } from 'kysely';

/** Up to which block the events of a feed may have been removed. */
export const purgedEvents: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('feeds').addColumn('purged_up_to', 'bigint').execute();
  },
};
