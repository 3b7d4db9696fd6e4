import { sql, type Kysely, type Migration } from 'kysely';

/**
 * Adds the trace of each document and each event, as a `traceparent`, and the times of a document's stages.
 * Earlier ones have none.
 */
export const traces: Migration = {
  async up(db: Kysely<unknown>) {
    const times = ['received_at', 'signing_at', 'signed_at', 'mined_at'].map((time) => `${time} bigint`);
    for (const column of ['trace text', ...times])
      await sql.raw(`alter table issuances add column ${column}`).execute(db);
    await sql`alter table mint_transactions add column signed_at bigint`.execute(db);
    await sql`alter table events add column trace text`.execute(db);
    await sql`create index issuances_traced on issuances (token_id) where trace is not null`.execute(db);
  },
};
