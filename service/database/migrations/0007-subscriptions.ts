import { PostgresAdapter, sql, type Kysely, type Migration } from 'kysely';

/** The replaced tables. */
const REPLACED = [
  'feeds',
  'blocks',
  'events',
  'streams',
  'deliveries',
  'attempts',
  'dead_letters',
  'orphans',
] as const;
const REPLACED_INDEXES = [
  'streams_due',
  'deliveries_of_event',
  'attempts_of_event',
  'events_by_block',
  'events_orphaned',
];

/**
 * Adds subscriptions. A channel delivers one feed to one subscription, and has a queue for each token. Rows
 * refer to each other by integers, and event ids are stored as 16 bytes. Whatever was stored before belongs to
 * the subscription `default`.
 */
export const subscriptions: Migration = {
  async up(db: Kysely<unknown>) {
    const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
    for (const index of REPLACED_INDEXES) await db.schema.dropIndex(index).execute();
    for (const table of REPLACED) await db.schema.alterTable(table).renameTo(`old_${table}`).execute();
    await createFeedTables(db, isPostgres);
    await createQueueTables(db, isPostgres);
    await copyFeeds(db);
    await copyEvents(db, isPostgres);
    await copyQueues(db, isPostgres);
    await copyOutcomes(db, isPostgres);
    await keepAttemptedEvents(db);
    for (const table of REPLACED) await db.schema.dropTable(`old_${table}`).execute();
  },
};

async function createFeedTables(db: Kysely<unknown>, isPostgres: boolean): Promise<void> {
  const id = idColumn(isPostgres);
  const bytes = sql.raw(isPostgres ? 'bytea' : 'blob');
  await sql`create table feeds (
    id ${id}, feed text not null unique, next_block bigint not null, last_block_hash text,
    epoch bigint not null default 0, held integer not null default 0, opened_at bigint not null default 0,
    purged_up_to bigint)`.execute(db);
  await sql`create table blocks (
    feed integer not null, number bigint not null, hash text, primary key (feed, number))`.execute(db);
  await sql`create table tokens (
    id ${id}, feed integer not null, token_id text not null, unique (feed, token_id))`.execute(db);
  await sql`create table events (
    id ${id}, feed integer not null, token integer not null, event_id ${bytes} not null, type text not null,
    block_number bigint not null, block_hash text not null, log_index integer not null, body text not null,
    audience text not null default 'all', recorded_at bigint not null, orphaned_at bigint,
    unique (event_id, feed))`.execute(db);
  await sql`create index events_by_block on events (feed, block_number, log_index)`.execute(db);
  await sql`create index events_orphaned on events (feed, log_index) where orphaned_at is not null`.execute(
    db,
  );
  await sql`create table orphans (
    feed integer not null, event_id ${bytes} not null, block_number bigint not null, block_hash text not null,
    outcome text not null, body text not null, orphaned_at bigint not null, mined_again_in bigint,
    primary key (feed, event_id, block_hash))`.execute(db);
}

async function createQueueTables(db: Kysely<unknown>, isPostgres: boolean): Promise<void> {
  const id = idColumn(isPostgres);
  // SQLite keeps the rows of such a table in the tree of their key.
  const clustered = sql.raw(isPostgres ? '' : 'without rowid');
  await sql`create table subscriptions (
    id ${id}, name text not null unique, definition text, secrets text, state text not null default 'active',
    created_at bigint not null, changed_at bigint not null)`.execute(db);
  await sql`create table subscription_changes (id integer primary key, version bigint not null)`.execute(db);
  await sql`insert into subscription_changes (id, version) values (1, 1)`.execute(db);
  await sql`create table channels (
    id ${id}, subscription integer not null, feed integer not null, state text not null default 'active',
    fill_block bigint, fill_index integer, failing_since bigint, unique (feed, subscription))`.execute(db);
  await sql`create table queues (
    channel integer not null, token integer not null, head bigint not null, tail bigint not null,
    attempts integer not null, first_attempted_at bigint, next_attempt_at bigint, lease text,
    claimed_to bigint, sent_to bigint not null default 0, primary key (channel, token)) ${clustered}`.execute(
    db,
  );
  await sql`create index queues_due on queues (channel, next_attempt_at)
    where next_attempt_at is not null`.execute(db);
  await sql`create table deliveries (
    channel integer not null, token integer not null, position bigint not null, event integer not null,
    primary key (channel, token, position)) ${clustered}`.execute(db);
  await sql`create table attempts (
    event integer not null, channel integer not null, attempt integer not null, attempted_at bigint not null,
    status integer, error text, milliseconds integer not null)`.execute(db);
  await sql`create index attempts_of_event on attempts (event, channel)`.execute(db);
  await sql`create table dead_letters (
    channel integer not null, event integer not null, died_at bigint not null, attempts integer not null,
    status integer, error text, primary key (channel, event)) ${clustered}`.execute(db);
}

function idColumn(isPostgres: boolean) {
  return sql.raw(isPostgres ? 'integer generated by default as identity primary key' : 'integer primary key');
}

async function copyFeeds(db: Kysely<unknown>): Promise<void> {
  await sql`insert into feeds (feed, next_block, last_block_hash, epoch, held, opened_at, purged_up_to)
    select feed, next_block, last_block_hash, epoch, held, opened_at, purged_up_to
    from old_feeds order by opened_at, feed`.execute(db);
  await sql`insert into blocks (feed, number, hash)
    select feeds.id, number, hash from old_blocks join feeds on feeds.feed = old_blocks.feed`.execute(db);
  await sql`insert into subscriptions (name, created_at, changed_at)
    select 'default', 0, 0 from old_feeds limit 1`.execute(db);
  await sql`insert into channels (subscription, feed)
    select subscriptions.id, feeds.id from feeds cross join subscriptions order by feeds.id`.execute(db);
}

/** The token's id in decimals; empty for the registry's own events, whose queue was named after its address. */
const TOKEN_OF_STREAM = sql`case
  when substr(stream, length(feed) + 2) like '0x%' then '' else substr(stream, length(feed) + 2) end`;

async function copyEvents(db: Kysely<unknown>, isPostgres: boolean): Promise<void> {
  await sql`insert into tokens (feed, token_id)
    select feeds.id, named.token_id
    from (select feed, ${TOKEN_OF_STREAM} as token_id from old_streams) named
    join feeds on feeds.feed = named.feed`.execute(db);
  await sql`insert into events (feed, token, event_id, type, block_number, block_hash, log_index, body,
      recorded_at, orphaned_at)
    select feeds.id, tokens.id, ${bytesOf('old_events.event_id', isPostgres)}, type, block_number, block_hash,
      log_index, body, recorded_at, orphaned_at
    from old_events
    join (select feed, event_id, min(${TOKEN_OF_STREAM}) as token_id from old_deliveries
      group by feed, event_id) named
      on named.feed = old_events.feed and named.event_id = old_events.event_id
    join feeds on feeds.feed = old_events.feed
    join tokens on tokens.feed = feeds.id and tokens.token_id = named.token_id
    order by old_events.recorded_at, block_number, log_index`.execute(db);
  await sql`insert into orphans (feed, event_id, block_number, block_hash, outcome, body, orphaned_at,
      mined_again_in)
    select feeds.id, ${bytesOf('event_id', isPostgres)}, block_number, block_hash, outcome, body, orphaned_at,
      mined_again_in
    from old_orphans join feeds on feeds.feed = old_orphans.feed`.execute(db);
}

async function copyQueues(db: Kysely<unknown>, isPostgres: boolean): Promise<void> {
  await sql`insert into queues (channel, token, head, tail, attempts, first_attempted_at, next_attempt_at,
      lease, claimed_to)
    select channels.id, tokens.id, head, tail, attempts, first_attempted_at, next_attempt_at, lease,
      case when lease is null then null else head end
    from (select old_streams.*, ${TOKEN_OF_STREAM} as token_id from old_streams) named
    join feeds on feeds.feed = named.feed
    join channels on channels.feed = feeds.id
    join tokens on tokens.feed = feeds.id and tokens.token_id = named.token_id`.execute(db);
  await sql`insert into deliveries (channel, token, position, event)
    select channels.id, tokens.id, position, events.id
    from (select old_deliveries.*, ${TOKEN_OF_STREAM} as token_id from old_deliveries) named
    join feeds on feeds.feed = named.feed
    join channels on channels.feed = feeds.id
    join tokens on tokens.feed = feeds.id and tokens.token_id = named.token_id
    join events on events.feed = feeds.id
      and events.event_id = ${bytesOf('named.event_id', isPostgres)}`.execute(db);
}

async function copyOutcomes(db: Kysely<unknown>, isPostgres: boolean): Promise<void> {
  await sql`insert into attempts (event, channel, attempt, attempted_at, status, error, milliseconds)
    select events.id, channels.id, attempt, attempted_at, status, error, milliseconds
    from old_attempts
    join feeds on feeds.feed = old_attempts.feed
    join channels on channels.feed = feeds.id
    join events on events.feed = feeds.id
      and events.event_id = ${bytesOf('old_attempts.event_id', isPostgres)}
    order by attempted_at`.execute(db);
  await sql`insert into dead_letters (channel, event, died_at, attempts, status, error)
    select channels.id, events.id, died_at, attempts, status, error
    from old_dead_letters
    join feeds on feeds.feed = old_dead_letters.feed
    join channels on channels.feed = feeds.id
    join events on events.feed = feeds.id
      and events.event_id = ${bytesOf('old_dead_letters.event_id', isPostgres)}`.execute(db);
}

interface AttemptedOrphan {
  feed: number;
  event_id: Uint8Array | ArrayBuffer;
  block_number: number;
  block_hash: string;
  body: string;
  orphaned_at: number;
}

/**
 * Orphaned events of which no attempt is known to have succeeded were deleted. They are now kept like those
 * that were delivered.
 */
async function keepAttemptedEvents(db: Kysely<unknown>): Promise<void> {
  const { rows } =
    await sql<AttemptedOrphan>`select feed, event_id, block_number, block_hash, body, orphaned_at
    from orphans where outcome = 'attempted' and not exists (
      select 1 from events where events.feed = orphans.feed and events.event_id = orphans.event_id)
    order by orphaned_at desc`.execute(db);
  for (const { feed, event_id, block_number, block_hash, body, orphaned_at } of rows) {
    const { type, data } = JSON.parse(body) as {
      type: string;
      data: { tokenId: string; tokenIdHex?: string; logIndex: number };
    };
    const tokenId = data.tokenIdHex === undefined ? '' : data.tokenId;
    await sql`insert into tokens (feed, token_id) values (${feed}, ${tokenId})
      on conflict do nothing`.execute(db);
    await sql`insert into events (feed, token, event_id, type, block_number, block_hash, log_index, body,
        recorded_at, orphaned_at)
      select ${feed}, id, ${Buffer.from(event_id as Uint8Array)}, ${type}, ${block_number}, ${block_hash},
        ${data.logIndex}, ${body}, ${orphaned_at}, ${orphaned_at}
      from tokens where feed = ${feed} and token_id = ${tokenId} on conflict do nothing`.execute(db);
  }
}

/** The 16 bytes of a UUID in text form. */
function bytesOf(column: string, isPostgres: boolean) {
  const digits = sql`replace(${sql.ref(column)}, '-', '')`;
  return isPostgres ? sql`decode(${digits}, 'hex')` : sql`unhex(${digits})`;
}
