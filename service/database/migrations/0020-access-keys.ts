import { PostgresAdapter, sql, type Kysely, type Migration } from 'kysely';

/** Adds the keys that see a part of the tokens, and the owners of the subscriptions that they made. */
export const accessKeys: Migration = {
  async up(db: Kysely<unknown>) {
    const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
    const bytes = sql.raw(isPostgres ? 'bytea' : 'blob');
    await sql`create table access_keys (
      id text primary key, owner text not null, name text not null, digest ${bytes} not null unique,
      scope text not null, may text not null, created_at bigint not null, expires_at bigint not null,
      ended_at bigint, used_at bigint, nonce text unique)`.execute(db);
    await sql`create index access_keys_by_owner on access_keys (owner, expires_at)`.execute(db);
    await sql`alter table subscriptions add column owner text`.execute(db);
    await sql`create index subscriptions_by_owner on subscriptions (owner) where owner is not null`.execute(
      db,
    );
  },
};
