import { closeSync, existsSync, mkdirSync, openSync, rmSync, statSync, utimesSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sync as writeAtomically } from 'write-file-atomic';
import { codeOf, ConfigurationError, messageOf, ServiceError } from '../../service/base/errors';

/** Mode of a file: readable by its owner only, or readable by everybody. */
export const SECRET_MODE = 0o600;
export const PUBLIC_MODE = 0o644;

/**
 * Writes a whole file or nothing: it writes a temporary file beside it, flushes it to disk and renames it.
 * Missing folders are created and symbolic links are followed.
 *
 * @throws ConfigurationError FILE_UNWRITABLE
 */
export function writeFileAtomically(path: string, content: string, mode: number): void {
  refuseUnwritable(path);
  try {
    writeAtomically(path, content, { mode });
  } catch (cause) {
    throw unwritable(path, cause);
  }
}

/**
 * Refuses a file that cannot be written: its folder allows none, or its owner made it read-only. A rename
 * would replace such a file all the same, also for root.
 *
 * @throws ConfigurationError FILE_UNWRITABLE
 */
export function refuseUnwritable(path: string): void {
  const trial = `${path}.${process.pid}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    closeSync(openSync(trial, 'wx'));
    rmSync(trial);
  } catch (cause) {
    throw unwritable(path, cause);
  }
  const { mode = 0o200 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  if ((mode & 0o200) !== 0) return;
  const remedy = `If it is to be replaced, run \`chmod u+w ${path}\` first.`;
  throw new ConfigurationError('FILE_UNWRITABLE', `${path} is read-only.`, { remedy });
}

/** The error for a file that cannot be created or replaced. */
function unwritable(path: string, cause: unknown): ConfigurationError {
  const isForbidden = ['EACCES', 'EEXIST', 'ENOTDIR', 'EPERM', 'EROFS'].includes(codeOf(cause) ?? '');
  const remedy = `Let the user of this command write to ${dirname(path)}, or name another file.`;
  const message = `${path} cannot be written: ${messageOf(cause)}.`;
  return new ConfigurationError('FILE_UNWRITABLE', message, isForbidden ? { cause, remedy } : { cause });
}

/** Mode of the folders created for an env file. They are private because the file holds secrets. */
const FOLDER_MODE = 0o700;
const RETRY_MS = 25;
const PATIENCE_MS = 5_000;
/** The holder of a lock renews it. A lock that is older was left by a process that was killed. */
const RENEW_MS = 500;
const ABANDONED_MS = 5_000;

/**
 * Runs `action` while no other process does so for `path`. Setup commands may run at the same time, and each
 * reads the env file, changes one line and writes it back.
 *
 * @param patienceMs how long to wait for another process.
 * @throws ServiceError FILE_LOCKED if another process holds the lock for longer; FILE_UNWRITABLE if there can
 *   be no lock beside the file.
 */
export async function withFileLock<T>(
  path: string,
  action: () => T | Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<T> {
  const lock = `${path}.lock`;
  const deadline = Date.now() + patienceMs;
  while (!take(lock)) {
    if (Date.now() > deadline) {
      const remedy = `If no other setup command is running, delete ${lock}.`;
      throw new ServiceError('FILE_LOCKED', `${path} is being written by another process.`, { remedy });
    }
    await sleep(RETRY_MS);
  }
  const renewal = setInterval(() => renew(lock), RENEW_MS);
  try {
    return await action();
  } finally {
    clearInterval(renewal);
    rmSync(lock, { force: true });
  }
}

function renew(lock: string): void {
  const now = new Date();
  if (existsSync(lock)) utimesSync(lock, now, now);
}

function take(lock: string): boolean {
  try {
    mkdirSync(dirname(lock), { recursive: true, mode: FOLDER_MODE });
  } catch (cause) {
    throw unwritable(lock, cause);
  }
  try {
    closeSync(openSync(lock, 'wx'));
    return true;
  } catch (thrown) {
    if (codeOf(thrown) !== 'EEXIST') throw unwritable(lock, thrown);
    if (isAbandoned(lock)) rmSync(lock, { force: true });
    return false;
  }
}

function isAbandoned(lock: string): boolean {
  const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  return age > ABANDONED_MS;
}
