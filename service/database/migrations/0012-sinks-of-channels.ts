import type { Kysely, Migration } from 'kysely';

/** Adds the sink that failed last. It is unknown until one fails. */
export const sinksOfChannels: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema.alterTable('channels').addColumn('sink_hash', 'text').execute();
  },
};
