import type { Kysely, Migration } from 'kysely';

/** Feeds, events, and the outbox's streams, deliveries and attempts. */
export const outbox: Migration = {
  async up(db: Kysely<unknown>) {
    await db.schema
      .createTable('feeds')
      .addColumn('feed', 'text', (column) => column.primaryKey())
      .addColumn('next_block', 'bigint', (column) => column.notNull())
      .addColumn('last_block_hash', 'text')
      .execute();
    await db.schema
      .createTable('events')
      .addColumn('feed', 'text', (column) => column.notNull())
      .addColumn('event_id', 'text', (column) => column.notNull())
      .addColumn('type', 'text', (column) => column.notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('block_number', 'bigint', (column) => column.notNull())
      .addColumn('block_hash', 'text', (column) => column.notNull())
      .addColumn('transaction_hash', 'text', (column) => column.notNull())
      .addColumn('log_index', 'integer', (column) => column.notNull())
      .addColumn('body', 'text', (column) => column.notNull())
      .addColumn('recorded_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('events_pk', ['feed', 'event_id'])
      .execute();
    await db.schema
      .createTable('streams')
      .addColumn('stream', 'text', (column) => column.primaryKey())
      .addColumn('feed', 'text', (column) => column.notNull())
      .addColumn('head', 'bigint', (column) => column.notNull())
      .addColumn('tail', 'bigint', (column) => column.notNull())
      .addColumn('attempts', 'integer', (column) => column.notNull())
      .addColumn('next_attempt_at', 'bigint')
      .addColumn('lease', 'text')
      .execute();
    await db.schema
      .createIndex('streams_due')
      .on('streams')
      .columns(['feed', 'next_attempt_at'])
      .where('next_attempt_at', 'is not', null)
      .execute();
    await db.schema
      .createTable('deliveries')
      .addColumn('stream', 'text', (column) => column.notNull())
      .addColumn('position', 'bigint', (column) => column.notNull())
      .addColumn('event_id', 'text', (column) => column.notNull())
      .addColumn('feed', 'text', (column) => column.notNull())
      .addColumn('delivered_at', 'bigint')
      .addPrimaryKeyConstraint('deliveries_pk', ['stream', 'position'])
      .execute();
    await db.schema
      .createTable('attempts')
      .addColumn('feed', 'text', (column) => column.notNull())
      .addColumn('event_id', 'text', (column) => column.notNull())
      .addColumn('attempt', 'integer', (column) => column.notNull())
      .addColumn('attempted_at', 'bigint', (column) => column.notNull())
      .addColumn('status', 'integer')
      .addColumn('error', 'text')
      .addColumn('milliseconds', 'integer', (column) => column.notNull())
      .execute();
    await db.schema.createIndex('attempts_of_event').on('attempts').columns(['feed', 'event_id']).execute();
  },
};
