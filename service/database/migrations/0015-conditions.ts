import { sql, type Kysely, type Migration } from 'kysely';

/** Adds the conditions that the operator is told of. */
export const conditions: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`create table conditions (
      what text not null, subject text not null, observer text not null, since bigint not null,
      detail text not null, primary key (what, subject, observer))`.execute(db);
  },
};
