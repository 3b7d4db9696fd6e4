import { Kysely, PostgresDialect } from 'kysely';
import { Pool, types, type ClientConfig, type CustomTypesConfig } from 'pg';
import { ConfigurationError, messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { printableUrl } from '../base/mask-secrets';
import { isRightTaken, takeRight } from './advisory-lock';
import type { Database } from './database';
import { guarded } from './guarded-pool';
import { expectMigrated, migrate } from './migrate';
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
 * @throws ConfigurationError DATABASE_UNREACHABLE at start; later failures are thrown by the statements.
 */
export async function openPostgres(url: string, logger: Logger): Promise<Database> {
  return open(url, migrate, (error) =>
    logger.warn({ error }, `a database connection was lost: ${messageOf(error)}`),
  );
}

/** Opens the database of a service for a command, without changing its tables. */
export async function openPostgresBesideService(url: string): Promise<Database> {
  return open(url, expectMigrated, () => undefined);
}

async function open(
  url: string,
  prepare: (db: Kysely<Schema>, place: string) => Promise<void>,
  onLost: (error: Error) => void,
): Promise<Database> {
  const connection: ClientConfig = {
    connectionString: url,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    statement_timeout: STATEMENT_WITHIN_MS,
    idle_in_transaction_session_timeout: STATEMENT_WITHIN_MS,
    query_timeout: ANSWER_WITHIN_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    application_name: 'transferable-document-service',
    types: NUMBERS,
  };
  const pool = new Pool({ ...connection, max: MOST_CONNECTIONS });
  // A broken connection is replaced. If it was in use, its statement fails. Without these listeners the error
  // would end the process.
  pool.on('error', onLost);
  pool.on('connect', (client) => client.on('error', () => undefined));
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool: guarded(pool) }) });
  try {
    await pool.query('select 1').catch((cause: unknown) => {
      throw unreachable(url, cause);
    });
    await withoutTimeLimit(connection, (one) => prepare(one, `at ${printableUrl(url)}`));
  } catch (cause) {
    await db.destroy();
    throw cause;
  }
  return {
    db,
    engine: 'postgres',
    transact: (work) => db.transaction().execute(work),
    takeRight: (right) => takeRight(connection, right),
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
  const unlimited = { statement_timeout: 0, query_timeout: 0 };
  const pool = new Pool({ ...connection, ...unlimited, max: 1 });
  pool.on('error', () => undefined);
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  await prepare(db).finally(() => db.destroy());
}

function unreachable(url: string, cause: unknown): ConfigurationError {
  const remedy = 'Start it, or correct DATABASE_URL: postgres://user:password@host:5432/name.';
  // Connecting to a name with several addresses fails with an AggregateError, which has no message.
  const reason = cause instanceof AggregateError ? cause.errors.map(messageOf).join('; ') : messageOf(cause);
  const message = `The database at ${printableUrl(url)} cannot be used: ${reason}. ${remedy}`;
  return new ConfigurationError('DATABASE_UNREACHABLE', message, { cause, remedy });
}
