import type { Kysely, Migration } from 'kysely';

/** Lets a registry that was added have the chain's own finality instead of a number of confirmations. */
export const finalityTags: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('registries').addColumn('finality_tag', 'text').execute();
  },
};
