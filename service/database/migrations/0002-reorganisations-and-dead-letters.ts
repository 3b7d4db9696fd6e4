import type { Kysely, Migration } from 'kysely';

/**
 * Adds kept block hashes, orphaned events, dead letters, and leases for several processes on one database.
 */
export const reorganisationsAndDeadLetters: Migration = {
  async up(db: Kysely<unknown>) {
    const { schema } = db;
    await schema
      .alterTable('feeds')
      .addColumn('epoch', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
    await schema
      .alterTable('feeds')
      .addColumn('held', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await schema
      .alterTable('feeds')
      .addColumn('opened_at', 'bigint', (column) => column.notNull().defaultTo(0))
      .execute();
    await schema
      .createTable('blocks')
      .addColumn('feed', 'text', (column) => column.notNull())
      .addColumn('number', 'bigint', (column) => column.notNull())
      .addColumn('hash', 'text')
      .addPrimaryKeyConstraint('blocks_pk', ['feed', 'number'])
      .execute();
    await schema.alterTable('events').addColumn('orphaned_at', 'bigint').execute();
    await schema.createIndex('events_by_block').on('events').columns(['feed', 'block_number']).execute();
    await schema
      .createIndex('events_orphaned')
      .on('events')
      .columns(['feed', 'transaction_hash'])
      .where('orphaned_at' as never, 'is not', null)
      .execute();
    await schema.alterTable('streams').addColumn('first_attempted_at', 'bigint').execute();
    await schema.alterTable('deliveries').dropColumn('delivered_at').execute();
    await schema.createIndex('deliveries_of_event').on('deliveries').columns(['feed', 'event_id']).execute();
    await schema
      .createTable('dead_letters')
      .addColumn('feed', 'text', (column) => column.notNull())
      .addColumn('event_id', 'text', (column) => column.notNull())
      .addColumn('died_at', 'bigint', (column) => column.notNull())
      .addColumn('attempts', 'integer', (column) => column.notNull())
      .addColumn('status', 'integer')
      .addColumn('error', 'text')
      .addPrimaryKeyConstraint('dead_letters_pk', ['feed', 'event_id'])
      .execute();
    await schema
      .createTable('orphans')
      .addColumn('feed', 'text', (column) => column.notNull())
      .addColumn('event_id', 'text', (column) => column.notNull())
      .addColumn('block_number', 'bigint', (column) => column.notNull())
      .addColumn('block_hash', 'text', (column) => column.notNull())
      .addColumn('outcome', 'text', (column) => column.notNull())
      .addColumn('body', 'text', (column) => column.notNull())
      .addColumn('orphaned_at', 'bigint', (column) => column.notNull())
      .addColumn('mined_again_in', 'bigint')
      .addPrimaryKeyConstraint('orphans_pk', ['feed', 'event_id', 'block_hash'])
      .execute();
  },
};
