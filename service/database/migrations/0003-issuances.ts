import type { Kysely, Migration } from 'kysely';

/**
 * Adds the journal: issuances, their documents in parts, their mints, and documents that are incomplete or
 * being deleted.
 */
export const issuances: Migration = {
  async up(db: Kysely<unknown>) {
    const { schema } = db;
    await schema
      .createTable('issuances')
      .addColumn('scope', 'text', (column) => column.notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('position', 'bigint', (column) => column.notNull())
      .addColumn('credential_id', 'text', (column) => column.notNull())
      .addColumn('beneficiary', 'text', (column) => column.notNull())
      .addColumn('holder', 'text', (column) => column.notNull())
      .addColumn('remark', 'text', (column) => column.notNull())
      .addColumn('document_bytes', 'bigint', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('tx_hash', 'text')
      .addColumn('failure_code', 'text')
      .addColumn('failure_message', 'text')
      .addColumn('idempotency_key', 'text')
      .addColumn('request_hash', 'text')
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('ended_at', 'bigint')
      .addPrimaryKeyConstraint('issuances_pk', ['scope', 'token_id'])
      .addUniqueConstraint('issuances_key', ['scope', 'idempotency_key'])
      .execute();
    await schema.createIndex('issuances_position').on('issuances').columns(['scope', 'position']).execute();
    await schema
      .createIndex('issuances_unfinished')
      .on('issuances')
      .columns(['scope', 'position'])
      .where('ended_at' as never, 'is', null)
      .execute();
    await schema
      .createIndex('issuances_ended')
      .on('issuances')
      .columns(['scope', 'ended_at'])
      .where('ended_at' as never, 'is not', null)
      .execute();
    await schema
      .createTable('document_parts')
      .addColumn('scope', 'text', (column) => column.notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('part', 'integer', (column) => column.notNull())
      // SQLite stores bytes as they are in a column of any type.
      .addColumn('bytes', 'bytea', (column) => column.notNull())
      .addPrimaryKeyConstraint('document_parts_pk', ['scope', 'token_id', 'part'])
      .execute();
    await schema
      .createTable('loose_documents')
      .addColumn('scope', 'text', (column) => column.notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('begun_at', 'bigint')
      .addPrimaryKeyConstraint('loose_documents_pk', ['scope', 'token_id'])
      .execute();
    await schema
      .createTable('mint_transactions')
      .addColumn('scope', 'text', (column) => column.notNull())
      .addColumn('token_id', 'text', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull())
      .addColumn('position', 'bigint', (column) => column.notNull())
      .addColumn('nonce', 'bigint', (column) => column.notNull())
      .addColumn('raw', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('mint_transactions_pk', ['scope', 'token_id', 'hash'])
      .execute();
    await schema
      .createIndex('mint_transactions_position')
      .on('mint_transactions')
      .columns(['scope', 'position'])
      .execute();
  },
};
