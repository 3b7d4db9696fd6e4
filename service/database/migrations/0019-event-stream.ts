import { randomBytes } from 'node:crypto';
import { PostgresAdapter, sql, type Kysely, type Migration } from 'kysely';

/**
 * Adds the position of each event in the stream of its feed, and the key of the cursors of all streams. The
 * keys of events that were restored are higher than those of later events. Orphans that were never taken back
 * get no position: those who fetch would keep them.
 */
export const eventStream: Migration = {
  async up(db: Kysely<unknown>) {
    const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
    for (const column of ['last_position', 'purged_position'])
      await sql`alter table feeds add column ${sql.ref(column)} bigint not null default 0`.execute(db);
    await sql`alter table events add column position bigint`.execute(db);
    await sql`update events set position = numbered.number
      from (
        select id, row_number() over (partition by feed order by recorded_at, id) as number from events
        where orphaned_at is null or original is not null
          or id in (select original from events where original is not null)
      ) as numbered
      where numbered.id = events.id`.execute(db);
    await sql`update feeds set last_position =
      coalesce((select max(position) from events where events.feed = feeds.id), 0)`.execute(db);
    await sql`create index events_by_position on events (feed, position)`.execute(db);
    const bytes = sql.raw(isPostgres ? 'bytea' : 'blob');
    await sql`create table cursor_keys (id integer primary key, bytes ${bytes} not null)`.execute(db);
    await sql`insert into cursor_keys (id, bytes) values (1, ${randomBytes(32)})`.execute(db);
  },
};
