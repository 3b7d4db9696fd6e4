import { sql, type Kysely, type Migration } from 'kysely';

/** Adds what changed in each version of `subscription_changes`, so that processes read only that. */
export const subscriptionChangeLog: Migration = {
  async up(db: Kysely<unknown>) {
    await sql`create table subscription_change_log (
      version integer primary key, subject text not null)`.execute(db);
  },
};
