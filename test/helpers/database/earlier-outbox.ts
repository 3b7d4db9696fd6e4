import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Kysely, Migrator, PostgresDialect } from 'kysely';
import Sqlite from 'libsql';
import { Pool } from 'pg';
import { systemTime } from '../../../service/base/time';
import { migrations } from '../../../service/database/migrations/all';
import { sqliteDialect } from '../../../service/database/sqlite-driver';
import { toCloudEvent, type CloudEvent, type RegistryIdentity } from '../../../service/events/cloud-event';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import type { State } from './engines';

/** The outbox's tables before there were subscriptions. */
type EarlierSchema = Record<
  'feeds' | 'blocks' | 'events' | 'streams' | 'deliveries' | 'attempts' | 'dead_letters' | 'orphans',
  EarlierRow
>;
type EarlierRow = Record<string, string | number | null>;

/** A feed and its registry. */
export interface EarlierFeed {
  feed: string;
  registry: RegistryIdentity;
}

/** When the stored events were recorded and attempted. Epoch milliseconds. */
export const EARLIER = 500_000;

/** Creates the tables as a migration left them. */
export async function migratedTo<T>(migration: string, { settings }: State): Promise<Kysely<T>> {
  const db = new Kysely<T>({ dialect: dialectOf(settings) });
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateTo(migration);
  if (error !== undefined) throw error as Error;
  return db;
}

/** Creates the tables as they were before subscriptions, and writes as that version did. */
export async function earlierOutbox(state: State) {
  const db = await migratedTo<EarlierSchema>('0006-purged-events', state);
  return {
    db,
    /** Stores a feed that was read up to a block. */
    async addFeed(name: string, changes: EarlierRow = {}) {
      const row = { next_block: 10, last_block_hash: '0x9a', epoch: 3, held: 0, opened_at: 1 };
      await db
        .insertInto('feeds')
        .values({ feed: name, purged_up_to: null, ...row, ...changes })
        .execute();
      await db.insertInto('blocks').values({ feed: name, number: 0, hash: '0x0a' }).execute();
      await db.insertInto('blocks').values({ feed: name, number: 9, hash: '0x9a' }).execute();
    },
    /** Stores the events of one token, and its queue. */
    async addQueue(
      this: void,
      { feed, registry }: EarlierFeed,
      events: readonly RegistryEvent[],
      queue: EarlierRow,
    ) {
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
    /** Stores failed attempts, and a successful one if `isDelivered`. */
    async addAttempts(this: void, feed: string, event_id: string, failures: number, isDelivered: boolean) {
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
  if (DATABASE_URL !== undefined) {
    // Removing the database may end connections that the pool has not yet closed.
    const pool = new Pool({ connectionString: DATABASE_URL, max: 2 }).on('error', () => undefined);
    return new PostgresDialect({ pool });
  }
  mkdirSync(DATA_DIR, { recursive: true, mode: 0o700 });
  return sqliteDialect(systemTime, new Sqlite(join(DATA_DIR, 'state.sqlite')), 1_000);
}

function earlierEvent(feed: string, event: RegistryEvent, body: CloudEvent): EarlierRow {
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
