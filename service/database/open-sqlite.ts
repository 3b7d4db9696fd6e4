import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Kysely } from 'kysely';
import Sqlite from 'libsql';
import { codeOf, ConfigurationError, messageOf, orUndefined, ServiceError } from '../base/errors';
import type { Logger } from '../base/logger';
import { type Time, repeat } from '../base/time';
import type { Database } from './database';
import { expectMigrated, migrate } from './migrate';
import type { Schema } from './schema';
import { createJointTransactions, sqliteDialect } from './sqlite-driver';

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
  { time, patienceMs = PATIENCE_MS, logger }: { time: Time; patienceMs?: number; logger?: Logger },
): Promise<Database> {
  prepareFolder(folder);
  const release = lock(folder);
  return open(time, folder, migrate, release, patienceMs, logger);
}

/**
 * Opens the database of a service for a command. The service may be running: its statements and the command's
 * wait for each other.
 *
 * @throws ConfigurationError DATABASE_MISSING, DATABASE_NOT_MIGRATED, and those of `openSqlite`.
 */
export async function openSqliteBesideService(time: Time, folder: string): Promise<Database> {
  try {
    accessSync(join(folder, STATE_FILE), constants.R_OK | constants.W_OK);
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT') throw unusable(folder, cause);
    const remedy = 'Set DATA_DIR to the folder of the service, or start the service once.';
    const message = `There is no database in ${folder}. ${remedy}`;
    throw new ConfigurationError('DATABASE_MISSING', message, { cause, remedy });
  }
  return open(time, folder, expectMigrated);
}

async function open(
  time: Time,
  folder: string,
  prepare: typeof migrate,
  release = () => undefined as void,
  patienceMs = PATIENCE_MS,
  logger?: Logger,
): Promise<Database> {
  const path = join(folder, STATE_FILE);
  const file = openFile(path, release);
  try {
    file.pragma(`busy_timeout = ${OPEN_WITHIN_MS}`);
    file.pragma('journal_mode = WAL');
    file.pragma('synchronous = FULL');
    file.pragma('busy_timeout = 0');
    const db = new Kysely<Schema>({ dialect: sqliteDialect(time, file, patienceMs) });
    await prepare(db, path);
    const watch = watchFiles(time, file, path, logger);
    return {
      db,
      engine: 'sqlite',
      transact: createJointTransactions(db),
      // This process has the whole database to itself.
      takeRight: async () => ({ lost: new AbortController().signal, release: async () => undefined }),
      isRightTaken: async () => false,
      isRemoved: () => watch.isRemoved(),
      async close() {
        await watch.stop();
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

/** The error for a DATA_DIR that cannot be read or written. */
export function unusable(folder: string, cause: unknown): ConfigurationError {
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

const PRIVATE_MODE = 0o600;
/** Suffixes of the files that SQLite keeps beside a database. It creates them with the database's mode. */
const BESIDE = ['-wal', '-shm', '-journal'];

/**
 * Makes a database's files readable by their owner only. A missing database is created empty, because SQLite
 * would create it with the mode that the umask leaves.
 */
function makePrivate(path: string): void {
  // An existing file is not opened: closing it would release the locks that this process holds on it.
  if (!existsSync(path)) closeSync(openSync(path, 'a', PRIVATE_MODE));
  for (const file of [path, ...BESIDE.map((ending) => path + ending)])
    if (existsSync(file)) chmodSync(file, PRIVATE_MODE);
}

const LOOK_EVERY_MS = 1_000;
/** SQLite's default: pages in the write-ahead log after which they are copied into the database's file. */
const CHECKPOINT_PAGES = 1_000;

/**
 * Looks once a second whether the files at `path` are still those that `file` has open. A process keeps
 * removed files open and goes on without an error, but its next start would find nothing.
 */
function watchFiles(time: Time, file: Sqlite.Database, path: string, logger: Logger | undefined) {
  const opened = (name: string): OpenFile => ({ path: name, identity: identityOf(name) });
  const [database, log, index] = [opened(path), opened(`${path}-wal`), opened(`${path}-shm`)];
  let isRemoved = false;
  const look = async (): Promise<void> => {
    if ([database, log, index].every(isInPlace) !== isRemoved) return;
    isRemoved = !isRemoved;
    // Without checkpoints the log is only appended to, so that copies of the database and of the log, one
    // after the other, fit together.
    file.pragma(`wal_autocheckpoint = ${isRemoved ? 0 : CHECKPOINT_PAGES}`);
    if (!isRemoved) return void logger?.info('the files of the database are in their place again');
    const command = rescue([log, database]);
    const error = removed(path, command);
    logger?.error({ error, command }, error.message);
  };
  const looking = repeat(time, look, LOOK_EVERY_MS, LOOK_EVERY_MS);
  return { isRemoved: () => isRemoved, stop: () => looking.stop() };
}

interface OpenFile {
  path: string;
  /** Undefined if the file does not exist. */
  identity: string | undefined;
}

function identityOf(path: string): string | undefined {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats && `${stats.dev}:${stats.ino}`;
}

/** A folder that cannot be read just now proves nothing. */
function isInPlace({ path, identity }: OpenFile): boolean {
  try {
    return identityOf(path) === identity;
  } catch (error) {
    return codeOf(error) !== 'ENOTDIR';
  }
}

function removed(path: string, command: string | undefined): ServiceError {
  const message =
    `${path}, or a file beside it, was removed, moved or replaced. Only this process still has the database` +
    ' open: its content is lost if the process ends.';
  const remedy =
    command === undefined
      ? 'Move the files back if they still exist, and do not end the process before.'
      : 'Move the files back if they still exist. Otherwise run `command`, which copies the open files to ' +
        'their place and ends the process, and then start the service again.';
  return new ServiceError('DATABASE_REMOVED', message, { remedy });
}

/** The open files of this process, also those that were removed. */
const OPEN_FILES = '/proc/self/fd';

/** A command for the shell. Undefined where the system does not show the open files of a process. */
function rescue(files: readonly OpenFile[]): string | undefined {
  const copies = files.map(({ path, identity }) => {
    const descriptor = identity && descriptorOf(identity);
    if (descriptor === undefined) return undefined;
    const keep = existsSync(path) ? `mv ${quoted(path)} ${quoted(`${path}.replaced`)} && ` : '';
    return `${keep}cp /proc/${process.pid}/fd/${descriptor} ${quoted(path)}`;
  });
  const folder = quoted(dirname(files[0]?.path ?? ''));
  if (copies.includes(undefined)) return undefined;
  return `(umask 077 && mkdir -p ${folder} && ${copies.join(' && ')} && kill ${process.pid})`;
}

/** The descriptor with which the folder was read is closed already, and has no identity. */
function descriptorOf(identity: string): string | undefined {
  return orUndefined(() =>
    readdirSync(OPEN_FILES).find((descriptor) => identityOf(join(OPEN_FILES, descriptor)) === identity),
  );
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
