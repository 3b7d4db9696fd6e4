import type { Kysely, Migration } from 'kysely';

/** Adds the registries that are followed without a setting, and those that were given up. */
export const registries: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('registries')
      .addColumn('chain_id', 'bigint', (column) => column.notNull())
      .addColumn('address', 'text', (column) => column.notNull())
      .addColumn('network', 'text', (column) => column.notNull())
      .addColumn('start_block', 'bigint')
      .addColumn('confirmations', 'bigint')
      .addColumn('added_at', 'bigint', (column) => column.notNull())
      .addColumn('removed_at', 'bigint')
      .addPrimaryKeyConstraint('registries_pkey', ['chain_id', 'address'])
      .execute();
  },
};
