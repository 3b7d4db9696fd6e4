import { accessSync, constants, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Kysely } from 'kysely';
import Sqlite from 'libsql';
import { ConfigurationError, codeOf, messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import type { Database } from './database';
import { createJointTransactions } from './joint-transactions';
import { expectMigrated, migrate } from './migrate';
import { makePrivate } from './private-files';
import type { Schema } from './schema';
import { sqliteDialect } from './sqlite-driver';
import { watchFiles } from './watch-files';

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
 * @param options tests wait for a shorter time, and most of them log nothing.
 * @throws ConfigurationError DATA_DIR_IN_USE if another process has opened it; DATA_DIR_UNUSABLE,
 *   DATABASE_DAMAGED, DATABASE_NEWER.
 */
export async function openSqlite(
  folder: string,
  { patienceMs = PATIENCE_MS, logger }: { patienceMs?: number; logger?: Logger } = {},
): Promise<Database> {
  prepareFolder(folder);
  const release = lock(folder);
  return open(folder, { prepare: migrate, release, patienceMs, logger });
}

/**
 * Opens the database of a service for a command. The service may be running: its statements and the command's
 * wait for each other.
 *
 * @throws ConfigurationError DATABASE_MISSING, DATABASE_NOT_MIGRATED, and those of `openSqlite`.
 */
export async function openSqliteBesideService(folder: string): Promise<Database> {
  try {
    accessSync(join(folder, STATE_FILE), constants.R_OK | constants.W_OK);
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT') throw unusable(folder, cause);
    const remedy = 'Set DATA_DIR to the folder of the service, or start the service once.';
    const message = `There is no database in ${folder}. ${remedy}`;
    throw new ConfigurationError('DATABASE_MISSING', message, { cause, remedy });
  }
  return open(folder, { prepare: expectMigrated, release: () => undefined, patienceMs: PATIENCE_MS });
}

async function open(
  folder: string,
  {
    prepare,
    release,
    patienceMs,
    logger,
  }: {
    prepare: (db: Kysely<Schema>, place: string) => Promise<void>;
    release: () => void;
    patienceMs: number;
    logger?: Logger | undefined;
  },
): Promise<Database> {
  const path = join(folder, STATE_FILE);
  const file = openFile(path, release);
  try {
    file.pragma(`busy_timeout = ${OPEN_WITHIN_MS}`);
    file.pragma('journal_mode = WAL');
    file.pragma('synchronous = FULL');
    file.pragma('busy_timeout = 0');
    const db = new Kysely<Schema>({ dialect: sqliteDialect(file, patienceMs) });
    await prepare(db, path);
    const watch = watchFiles(file, path, logger);
    return {
      db,
      engine: 'sqlite',
      transact: createJointTransactions(db),
      // This process has the whole database to itself.
      takeRight: async () => ({ lost: new AbortController().signal, release: async () => undefined }),
      isRightTaken: async () => false,
      isRemoved: () => watch.isRemoved(),
      async close() {
        watch.stop();
        await db.destroy();
        release();
      },
    };
  } catch (cause) {
    file.close();
    release();
    throw openingError(path, cause);
  }
}

function openFile(path: string, release: () => void = () => undefined): Sqlite.Database {
  try {
    return new Sqlite(path);
  } catch (cause) {
    release();
    throw unusable(dirname(path), cause);
  }
}

/** Rewrites an error that an operator has to fix. A migration's is in its cause. */
function openingError(path: string, cause: unknown): unknown {
  const code = codeOf(cause) === 'MIGRATION_FAILED' ? codeOf((cause as Error).cause) : codeOf(cause);
  if (/^SQLITE_(NOTADB|CORRUPT)/.test(code ?? '')) {
    const remedy = 'Restore a backup of it, or set DATA_DIR to another folder.';
    const message = `${path} is damaged, or is not a database: ${messageOf(cause)}. ${remedy}`;
    return new ConfigurationError('DATABASE_DAMAGED', message, { cause, remedy });
  }
  return /^SQLITE_(READONLY|CANTOPEN|PERM|IOERR)/.test(code ?? '') ? unusable(dirname(path), cause) : cause;
}

function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK);
    for (const path of [STATE_FILE, LOCK_FILE].map((name) => join(folder, name))) {
      makePrivate(path);
      accessSync(path, constants.R_OK | constants.W_OK);
    }
  } catch (cause) {
    throw unusable(folder, cause);
  }
}

function unusable(folder: string, cause: unknown): ConfigurationError {
  const remedy = 'Set DATA_DIR to a folder that can be written to, and whose files belong to the same user.';
  const message = `DATA_DIR ${folder} cannot be used: ${messageOf(cause)}. ${remedy}`;
  return new ConfigurationError('DATA_DIR_UNUSABLE', message, { cause, remedy });
}

/**
 * Prevents two services on one database, which would both deliver. The lock is SQLite's own on a separate
 * file: the operating system releases it when the process dies, and readers of the database are not blocked.
 */
function lock(folder: string): () => void {
  const path = join(folder, LOCK_FILE);
  const file = openFile(path);
  try {
    file.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    file.close();
    if (!codeOf(cause)?.startsWith('SQLITE_BUSY')) throw openingError(path, cause);
    const remedy = 'Stop the other process, or give this one a DATA_DIR of its own.';
    const message = `${folder} is in use by another running service. ${remedy}`;
    throw new ConfigurationError('DATA_DIR_IN_USE', message, { cause, remedy });
  }
  return () => file.close();
}
