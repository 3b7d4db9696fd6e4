import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Kysely } from 'kysely';
import Sqlite from 'libsql';
import { ConfigurationError, codeOf, messageOf } from '../base/errors';
import type { Database } from './database';
import { createJointTransactions } from './joint-transactions';
import { expectMigrated, migrate } from './migrate';
import { makePrivate } from './private-files';
import type { Schema } from './schema';
import { sqliteDialect } from './sqlite-driver';

/** Timeout of the file's lock while it is opened. The process does nothing else meanwhile. */
const OPEN_WITHIN_MS = 5_000;
/** Timeout of a transaction that waits for another process, such as an operator's tool. */
const PATIENCE_MS = 30_000;

const STATE_FILE = 'state.sqlite';
const LOCK_FILE = 'service.lock';

/**
 * Opens the embedded database in `folder`, and creates it if there is none. It uses a write-ahead log with
 * `synchronous=FULL`: committed data survives a crash of the process and of the machine.
 *
 * @param options tests wait for a shorter time.
 * @throws ConfigurationError DATA_DIR_IN_USE if another process has opened it.
 */
export async function openSqlite(folder: string, { patienceMs = PATIENCE_MS } = {}): Promise<Database> {
  prepareFolder(folder);
  const release = lock(folder);
  return open(folder, { prepare: migrate, release, patienceMs });
}

/**
 * Opens the database of a service for a command. The service may be running: its statements and the command's
 * wait for each other.
 *
 * @throws ConfigurationError DATABASE_MISSING, DATABASE_NOT_MIGRATED.
 */
export async function openSqliteBesideService(folder: string): Promise<Database> {
  if (!existsSync(join(folder, STATE_FILE))) {
    const remedy = 'Set DATA_DIR to the folder of the service, or start the service once.';
    const message = `There is no database in ${folder}. ${remedy}`;
    throw new ConfigurationError('DATABASE_MISSING', message, { remedy });
  }
  return open(folder, { prepare: expectMigrated, release: () => undefined, patienceMs: PATIENCE_MS });
}

async function open(
  folder: string,
  {
    prepare,
    release,
    patienceMs,
  }: { prepare: (db: Kysely<Schema>) => Promise<void>; release: () => void; patienceMs: number },
): Promise<Database> {
  const file = new Sqlite(join(folder, STATE_FILE));
  try {
    file.pragma(`busy_timeout = ${OPEN_WITHIN_MS}`);
    file.pragma('journal_mode = WAL');
    file.pragma('synchronous = FULL');
    file.pragma('busy_timeout = 0');
    const db = new Kysely<Schema>({ dialect: sqliteDialect(file, patienceMs) });
    await prepare(db);
    return {
      db,
      engine: 'sqlite',
      transact: createJointTransactions(db),
      // This process has the whole database to itself.
      lead: async () => ({ lost: new AbortController().signal, release: async () => undefined }),
      isLed: async () => false,
      async close() {
        await db.destroy();
        release();
      },
    };
  } catch (cause) {
    file.close();
    release();
    throw cause;
  }
}

function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    for (const name of [STATE_FILE, LOCK_FILE]) makePrivate(join(folder, name));
  } catch (cause) {
    const remedy =
      'Set DATA_DIR to a folder that can be written to, and whose files belong to the same user.';
    const message = `DATA_DIR ${folder} cannot be used: ${messageOf(cause)}. ${remedy}`;
    throw new ConfigurationError('DATA_DIR_UNUSABLE', message, { cause, remedy });
  }
}

/**
 * Prevents two services on one database, which would both deliver. The lock is SQLite's own on a separate
 * file: the operating system releases it when the process dies, and readers of the database are not blocked.
 */
function lock(folder: string): () => void {
  const file = new Sqlite(join(folder, LOCK_FILE));
  try {
    file.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    file.close();
    if (!codeOf(cause)?.startsWith('SQLITE_BUSY')) throw cause;
    const remedy = 'Stop the other process, or give this one a DATA_DIR of its own.';
    const message = `${folder} is in use by another running service. ${remedy}`;
    throw new ConfigurationError('DATA_DIR_IN_USE', message, { cause, remedy });
  }
  return () => file.close();
}
