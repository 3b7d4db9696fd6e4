import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Kysely, Migrator, PostgresDialect } from 'kysely';
import Sqlite from 'libsql';
import { Pool } from 'pg';
import { migrations } from '../../../service/database/migrations/all';
import { sqliteDialect } from '../../../service/database/sqlite-driver';
import { toCloudEvent, type CloudEvent, type RegistryIdentity } from '../../../service/events/cloud-event';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import type { State } from './engines';

/** The outbox's tables before there were subscriptions. */
interface EarlierSchema {
  feeds: {
    feed: string;
    next_block: number;
    last_block_hash: string | null;
    epoch: number;
    held: number;
    opened_at: number;
    purged_up_to: number | null;
  };
  blocks: { feed: string; number: number; hash: string | null };
  events: {
    feed: string;
    event_id: string;
    type: string;
    token_id: string;
    block_number: number;
    block_hash: string;
    transaction_hash: string;
    log_index: number;
    body: string;
    recorded_at: number;
    orphaned_at: number | null;
  };
  streams: {
    stream: string;
    feed: string;
    head: number;
    tail: number;
    attempts: number;
    first_attempted_at: number | null;
    next_attempt_at: number | null;
    lease: string | null;
  };
  deliveries: { stream: string; position: number; event_id: string; feed: string };
  attempts: {
    feed: string;
    event_id: string;
    attempt: number;
    attempted_at: number;
    status: number | null;
    error: string | null;
    milliseconds: number;
  };
  dead_letters: {
    feed: string;
    event_id: string;
    died_at: number;
    attempts: number;
    status: number | null;
    error: string | null;
  };
  orphans: {
    feed: string;
    event_id: string;
    block_number: number;
    block_hash: string;
    outcome: string;
    body: string;
    orphaned_at: number;
    mined_again_in: number | null;
  };
}

/** The position of a token queue. */
export type EarlierQueue = Partial<Omit<EarlierSchema['streams'], 'stream' | 'feed' | 'tail'>>;

/** Writes an outbox as the version before subscriptions did. */
export interface EarlierOutbox {
  db: Kysely<EarlierSchema>;
  /** Stores a feed that was read up to a block. */
  addFeed(this: void, name: string, changes?: Partial<EarlierSchema['feeds']>): Promise<void>;
  /** Stores the events of one token, and its queue. */
  addQueue(
    this: void,
    feed: EarlierFeed,
    events: readonly RegistryEvent[],
    queue: EarlierQueue,
  ): Promise<CloudEvent[]>;
  /** Stores failed attempts, and a successful one if `isDelivered`. */
  addAttempts(
    this: void,
    feed: string,
    eventId: string,
    failures: number,
    isDelivered: boolean,
  ): Promise<void>;
  close(this: void): Promise<void>;
}

/** A feed and its registry. */
export interface EarlierFeed {
  feed: string;
  registry: RegistryIdentity;
}

/** When the stored events were recorded and attempted. Epoch milliseconds. */
export const EARLIER = 500_000;

/** Creates the tables as they were before subscriptions. */
export async function earlierOutbox({ settings }: State): Promise<EarlierOutbox> {
  const db = new Kysely<EarlierSchema>({ dialect: dialectOf(settings) });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateTo('0006-purged-events');
  if (error !== undefined) throw error as Error;
  return {
    db,
    async addFeed(name, changes = {}) {
      const row = { next_block: 10, last_block_hash: '0x9a', epoch: 3, held: 0, opened_at: 1 };
      await db
        .insertInto('feeds')
        .values({ feed: name, purged_up_to: null, ...row, ...changes })
        .execute();
      await db.insertInto('blocks').values({ feed: name, number: 0, hash: '0x0a' }).execute();
      await db.insertInto('blocks').values({ feed: name, number: 9, hash: '0x9a' }).execute();
    },
    async addQueue({ feed, registry }, events, queue) {
      const bodies = events.map((event) => toCloudEvent(event, registry));
      const [first] = bodies;
      if (first === undefined) throw new Error('a queue has events');
      const { tokenIdHex, tokenId, registryAddress } = first.data;
      const stream = `${feed}/${tokenIdHex === undefined ? registryAddress : tokenId}`;
      for (const [index, event] of events.entries()) {
        const body = bodies[index] ?? first;
        await db
          .insertInto('events')
          .values(earlierEvent(feed, event, body))
          .execute();
        const position = index + 1;
        await db.insertInto('deliveries').values({ stream, position, event_id: body.id, feed }).execute();
      }
      const idle = { head: 1, attempts: 0, first_attempted_at: null, next_attempt_at: null, lease: null };
      await db
        .insertInto('streams')
        .values({ stream, feed, tail: events.length, ...idle, ...queue })
        .execute();
      return bodies;
    },
    async addAttempts(feed, event_id, failures, isDelivered) {
      const results = [...Array<number>(failures).fill(500), ...(isDelivered ? [200] : [])];
      for (const [index, status] of results.entries())
        await db
          .insertInto('attempts')
          .values({
            feed,
            event_id,
            attempt: index + 1,
            attempted_at: EARLIER + index,
            status,
            error: status === 200 ? null : 'answered 500',
            milliseconds: 5,
          })
          .execute();
    },
    close: () => db.destroy(),
  };
}

function dialectOf({ DATA_DIR, DATABASE_URL }: State['settings']) {
  if (DATABASE_URL !== undefined)
    return new PostgresDialect({ pool: new Pool({ connectionString: DATABASE_URL, max: 2 }) });
  mkdirSync(DATA_DIR, { recursive: true, mode: 0o700 });
  return sqliteDialect(new Sqlite(join(DATA_DIR, 'state.sqlite')), 1_000);
}

function earlierEvent(feed: string, event: RegistryEvent, body: CloudEvent): EarlierSchema['events'] {
  return {
    feed,
    event_id: body.id,
    type: body.type,
    token_id: body.data.tokenId,
    block_number: event.blockNumber,
    block_hash: event.blockHash,
    transaction_hash: event.transactionHash,
    log_index: event.blockLogIndex,
    body: JSON.stringify(body),
    recorded_at: EARLIER,
    orphaned_at: null,
  };
}
