import { closeSync, existsSync, mkdirSync, openSync, rmSync, statSync, utimesSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError, codeOf } from '../../service/base/errors';
import { unwritable } from './write-file';

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
      throw new ServiceError('FILE_LOCKED', `${path} is being written by another process.`, {
        remedy,
        retryable: true,
      });
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
