import { closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError, codeOf } from '../service/errors';

const RETRY_MS = 25;
const PATIENCE_MS = 5_000;
/** A lock is held for milliseconds: an older one was left behind by a process that was killed. */
const ABANDONED_MS = 3_000;

/**
 * Runs `action` while no other process does the same for `path`. Setup commands may run side by side, and each reads the env file,
 * changes one line and writes it back.
 *
 * @throws ServiceError FILE_LOCKED when somebody else holds the lock for seconds.
 */
export async function withFileLock<T>(path: string, action: () => T): Promise<T> {
  const lock = `${path}.lock`;
  mkdirSync(dirname(lock), { recursive: true });
  const deadline = Date.now() + PATIENCE_MS;
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
  try {
    return action();
  } finally {
    rmSync(lock, { force: true });
  }
}

function take(lock: string): boolean {
  try {
    closeSync(openSync(lock, 'wx'));
    return true;
  } catch (thrown) {
    if (codeOf(thrown) !== 'EEXIST') throw thrown;
    if (isAbandoned(lock)) rmSync(lock, { force: true });
    return false;
  }
}

function isAbandoned(lock: string): boolean {
  const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
  return age > ABANDONED_MS;
}
