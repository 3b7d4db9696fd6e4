import type { Kysely, Migration } from 'kysely';

/** Adds the number of the Bill of Lading to issuances. Earlier ones have none. */
export const billOfLadingNumbers: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('issuances').addColumn('bl_number', 'text').execute();
  },
};
