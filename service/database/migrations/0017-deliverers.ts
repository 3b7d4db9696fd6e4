import { sql, type Kysely, type Migration } from 'kysely';

/** Adds the processes that deliver each feed. They divide the limits of subscriptions. */
export const deliverers: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`create table deliverers (
      feed text not null, process text not null, seen_at bigint not null,
      lacking text not null, divides_with text not null,
      primary key (feed, process))`.execute(db);
  },
};
