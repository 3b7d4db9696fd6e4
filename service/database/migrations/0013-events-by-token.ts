import type { Kysely, Migration } from 'kysely';

/** Finds the events of a token in the order of recording. SQLite adds the row's id to each entry. */
export const eventsByToken: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.createIndex('events_by_token').on('events').columns(['token', 'id']).execute();
  },
};
