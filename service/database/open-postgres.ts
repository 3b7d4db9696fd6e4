import { randomInt } from 'node:crypto';
import {
  Kysely,
  PostgresDialect,
  sql,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresQueryResult,
} from 'kysely';
import { Client, Pool, types, type ClientBase, type ClientConfig, type CustomTypesConfig } from 'pg';
import { codeOf, ConfigurationError, messageOf, ServiceError, connectionProblem } from '../base/errors';
import type { Logger } from '../base/logger';
import { printableUrl } from '../base/mask-secrets';
import { type Time, repeat, untilAborted, within } from '../base/time';
import { readOnlyError, type Database, type ExclusiveRight } from './database';
import type { migrate } from './migrate';
import type { Schema } from './schema';

const MOST_CONNECTIONS = 10;
const KEEP_ALIVE_AFTER_MS = 5_000;
const CONNECT_WITHIN_MS = 10_000;
/** Server-side timeout of a statement, and of an idle transaction. */
const STATEMENT_WITHIN_MS = 30_000;
/** Client-side timeout: the connection hangs, and is replaced. */
const ANSWER_WITHIN_MS = 40_000;

/**
 * Positions, block numbers and times are `bigint` columns. pg returns them as text, but JavaScript numbers
 * represent their values exactly.
 */
const NUMBERS: CustomTypesConfig = {
  getTypeParser: (oid, format) =>
    oid === types.builtins.INT8 ? Number : (types.getTypeParser(oid, format) as (text: string) => unknown),
};

/**
 * Connects to PostgreSQL. Several services may share the database: they share the deliveries, and one of them
 * reads each feed's chain.
 *
 * @param prepare checks the tables, or brings them up to date.
 * @param logger absent in commands.
 * @throws ConfigurationError DATABASE_UNREACHABLE and DATABASE_POOLED at start; later failures are thrown by
 *   the statements.
 */
export async function openPostgres(
  time: Time,
  url: string,
  prepare: typeof migrate,
  logger?: Logger,
): Promise<Database> {
  const connection: ClientConfig = {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    query_timeout: ANSWER_WITHIN_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    application_name: 'transferable-document-service',
    types: NUMBERS,
  };
  const pool = new Pool({ ...connection, max: MOST_CONNECTIONS, onConnect: limitTo(STATEMENT_WITHIN_MS) });
  // A broken connection is replaced. If it was in use, its statement fails. Without these listeners the error
  // would end the process.
  pool.on('error', (error) => logger?.warn({ error }, `a database connection was lost: ${messageOf(error)}`));
  pool.on('connect', (client) => client.on('error', () => undefined));
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: guarded(pool) }) });
  try {
    await expectOwnSessions(time, connection, url);
    const { rows } = await sql<{ transaction_read_only: string }>`show transaction_read_only`.execute(db);
    if (rows[0]?.transaction_read_only === 'on') throw readOnlyError();
    await withoutTimeLimit(connection, (one) => prepare(one, `at ${printableUrl(url)}`));
  } catch (cause) {
    await db.destroy();
    throw cause;
  }
  return {
    db,
    engine: 'postgres',
    transact: (work) => db.transaction().execute(work),
    takeRight: (right) => takeRight(time, connection, right),
    isRightTaken: (right) => isRightTaken(db, right),
    isRemoved: () => false,
    close: () => db.destroy(),
  };
}

/** Statements of migrations have no time limit, and neither has waiting for another process that migrates. */
async function withoutTimeLimit(
  connection: ClientConfig,
  prepare: (db: Kysely<Schema>) => Promise<void>,
): Promise<void> {
  const pool = new Pool({ ...connection, query_timeout: 0, max: 1, onConnect: limitTo(0) });
  pool.on('error', () => undefined);
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  await prepare(db).finally(() => db.destroy());
}

/**
 * Limits the time of statements, and of idle transactions, on an open connection. PgBouncer refuses these
 * settings in the startup packet.
 */
function limitTo(statementMs: number): (client: ClientBase) => unknown {
  const idle = `set idle_in_transaction_session_timeout = ${STATEMENT_WITHIN_MS}`;
  return (client) => client.query(`set statement_timeout = ${statementMs}; ${idle}`);
}

const ROUNDS = 3;

/**
 * Checks that each connection has a session of its own. A pooler of transactions or statements lends the
 * same session to several connections, or several to one: a lock then belongs to nobody. Nothing is set in
 * the sessions, because they may be those of other programs.
 *
 * @throws ConfigurationError DATABASE_UNREACHABLE, DATABASE_POOLED.
 */
async function expectOwnSessions(time: Time, connection: ClientConfig, url: string): Promise<void> {
  const newClient = (): Client =>
    new Client({ ...connection, query_timeout: CONNECT_WITHIN_MS }).on('error', () => undefined);
  const [one, other] = [newClient(), newClient()];
  const key = randomInt(2 ** 47);
  const ask = async (client: Client, verb: 'try_advisory_lock' | 'advisory_unlock'): Promise<boolean> =>
    (await client.query<{ is: boolean }>(`select pg_${verb}(${key}) as is`)).rows[0]?.is === true;
  let areOwn = true;
  try {
    await one.connect();
    await other.connect();
    // A busy pooler may give the right answers by chance.
    for (let round = 1; areOwn && round <= ROUNDS; round++) {
      // A session may take its own lock again. All are asked: whatever was locked is unlocked.
      const taken = [await ask(one, 'try_advisory_lock'), await ask(one, 'try_advisory_lock')];
      const isTakenTwice = await ask(other, 'try_advisory_lock');
      const unlocked = [await ask(one, 'advisory_unlock'), await ask(one, 'advisory_unlock')];
      areOwn = !isTakenTwice && [...taken, ...unlocked].every(Boolean);
    }
  } catch (cause) {
    throw unreachable(url, cause);
  } finally {
    await Promise.all([one, other].map((client) => end(time, client)));
  }
  if (areOwn) return;
  const remedy = 'Set `pool_mode = session` in PgBouncer, or let DATABASE_URL lead to PostgreSQL itself.';
  const message = `${printableUrl(url)} is a pooler of transactions or statements, not sessions. ${remedy}`;
  throw new ConfigurationError('DATABASE_POOLED', message, { remedy });
}

function unreachable(url: string, cause: unknown): ConfigurationError {
  const remedy = 'Start it, or correct DATABASE_URL: postgres://user:password@host:5432/name.';
  const problem = `cannot be used: ${connectionProblem(cause)}`;
  const message = `The database at ${printableUrl(url)} ${problem}. ${remedy}`;
  return new ConfigurationError('DATABASE_UNREACHABLE', message, { cause, remedy });
}

const END_WITHIN_MS = 5_000;
/** Interval and timeout of the checks of the connection that holds a lock. */
const BEAT_EVERY_MS = 5_000;
const BEAT_WITHIN_MS = 5_000;

/**
 * Keep-alive settings in seconds. With them the server soon notices that the client is gone, and frees the
 * lock.
 */
const KEEP_ALIVE = `
  set tcp_keepalives_idle = 5;
  set tcp_keepalives_interval = 5;
  set tcp_keepalives_count = 3`;

/**
 * Takes the advisory lock of a right on a separate connection. PostgreSQL releases the lock when the
 * connection ends for any reason, so that another process can take over.
 */
export async function takeRight(
  time: Time,
  connection: ClientConfig,
  right: string,
): Promise<ExclusiveRight | undefined> {
  const client = new Client({ ...connection, query_timeout: BEAT_WITHIN_MS });
  const ended = new AbortController();
  const message = `The database connection that holds the right ${right} was lost.`;
  const lose = (): void => ended.abort(new ServiceError('LEADERSHIP_LOST', message));
  client.on('error', lose);
  client.on('end', lose);
  try {
    await client.connect();
    await limitTo(STATEMENT_WITHIN_MS)(client);
    await client.query(KEEP_ALIVE);
    const lock = 'select pg_try_advisory_lock(hashtextextended($1, 0)) as taken';
    const { rows } = await client.query<{ taken: boolean }>(lock, [right]);
    if (rows[0]?.taken) return { lost: ended.signal, release: beat(time, client, lose) };
  } catch (cause) {
    await end(time, client);
    throw cause;
  }
  await end(time, client);
  return undefined;
}

/** Whether any process holds the lock of a right. pg_locks lists the lock's 64 bits in two halves. */
export async function isRightTaken(db: Kysely<Schema>, right: string): Promise<boolean> {
  const { rows } = await sql<{ taken: boolean }>`
    select exists (
      select 1 from pg_locks
      where locktype = 'advisory' and objsubid = 1 and granted
        and database = (select oid from pg_database where datname = current_database())
        and ((classid::bigint << 32) | objid::bigint) = hashtextextended(${right}, 0)
    ) as taken`.execute(db);
  return rows[0]?.taken ?? false;
}

/** Checks the connection until it is released; returns a function that releases it. */
function beat(time: Time, client: Client, lose: () => void): () => Promise<void> {
  const ask = async (): Promise<void> => void (await client.query('select 1').catch(lose));
  const beating = repeat(time, ask, BEAT_EVERY_MS, BEAT_EVERY_MS);
  return async () => {
    void beating.stop();
    await end(time, client);
  };
}

/** Closes the connection. If that hangs, it is left to the operating system. */
async function end(time: Time, client: Client): Promise<void> {
  await within(time, END_WITHIN_MS, (late) => untilAborted(late, client.end())).catch(() => undefined);
}

/**
 * Wraps a pool so that a connection is never reused after a statement on it got no answer. pg gives up
 * waiting (`query_timeout`) without cancelling the statement: it and its transaction may still run on the
 * server, and the next user of the connection would work inside that transaction.
 */
export function guarded(pool: Pool): PostgresPool {
  return {
    async connect() {
      const client = await pool.connect();
      let broken: Error | undefined;
      const query = async <R>(
        sql: string,
        parameters: readonly unknown[],
      ): Promise<PostgresQueryResult<R>> => {
        // Sends nothing more, not even a rollback: closing the connection rolls back.
        if (broken) throw broken;
        try {
          return (await client.query(sql, [...parameters])) as unknown as PostgresQueryResult<R>;
        } catch (error) {
          // An error with an SQLSTATE is the server's own: it refused, and the connection is usable.
          const isAnswered = error instanceof Error && 'severity' in error && 'code' in error;
          if (!isAnswered) broken = error as Error;
          // SQLSTATE of a write in a read-only transaction.
          throw codeOf(error) === '25006' ? readOnlyError(error) : error;
        }
      };
      const release = (): void => client.release(broken);
      return { query, release } as PostgresPoolClient;
    },
    end: () => pool.end(),
  };
}
