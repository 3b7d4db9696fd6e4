import { existsSync, fstatSync, readdirSync, statSync, type BigIntStats } from 'node:fs';
import { dirname } from 'node:path';
import type Sqlite from 'libsql';
import { ServiceError, codeOf } from '../base/errors';
import type { Logger } from '../base/logger';

const LOOK_EVERY_MS = 1_000;
/** SQLite's default: pages in the write-ahead log after which they are copied into the database's file. */
const CHECKPOINT_PAGES = 1_000;

/** Notices that the files of an open database were removed, moved or replaced. */
export interface FileWatch {
  isRemoved(): boolean;
  stop(): void;
}

/**
 * Looks once a second whether the files at `path` are still those that `file` has open. A process keeps
 * removed files open and goes on without an error, but its next start would find nothing.
 */
export function watchFiles(file: Sqlite.Database, path: string, logger: Logger | undefined): FileWatch {
  const database = { path, identity: identityOf(path) };
  const log = { path: `${path}-wal`, identity: identityOf(`${path}-wal`) };
  const index = { path: `${path}-shm`, identity: identityOf(`${path}-shm`) };
  let isRemoved = false;
  const look = (): void => {
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
  const looking = setInterval(look, LOOK_EVERY_MS).unref();
  return { isRemoved: () => isRemoved, stop: () => clearInterval(looking) };
}

interface OpenFile {
  path: string;
  /** Undefined if the file does not exist. */
  identity: string | undefined;
}

function identityOf(path: string): string | undefined {
  return shown(statSync(path, { bigint: true, throwIfNoEntry: false }));
}

function shown(stats: BigIntStats | undefined): string | undefined {
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

/** A command for the shell. Undefined where the system does not show the open files of a process. */
function rescue(files: readonly OpenFile[]): string | undefined {
  const copies = files.map(({ path, identity }) => {
    const descriptor = descriptorOf(identity);
    if (descriptor === undefined) return undefined;
    const keep = existsSync(path) ? `mv ${quoted(path)} ${quoted(`${path}.replaced`)} && ` : '';
    return `${keep}cp /proc/${process.pid}/fd/${descriptor} ${quoted(path)}`;
  });
  const folder = quoted(dirname(files[0]?.path ?? ''));
  if (copies.includes(undefined)) return undefined;
  return `(umask 077 && mkdir -p ${folder} && ${copies.join(' && ')} && kill ${process.pid})`;
}

function descriptorOf(identity: string | undefined): number | undefined {
  try {
    return readdirSync('/proc/self/fd')
      .map(Number)
      .find((descriptor) => isOpenAs(descriptor, identity));
  } catch {
    return undefined;
  }
}

/** The descriptor with which the folder was read is closed already. */
function isOpenAs(descriptor: number, identity: string | undefined): boolean {
  try {
    return shown(fstatSync(descriptor, { bigint: true })) === identity;
  } catch {
    return false;
  }
}

function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
