import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { owned } from './resources';

/** Enough space for the largest test. */
const ENOUGH_BYTES = 2e9;
/** A file system in memory (Linux): databases commit there without waiting for a disk. */
const IN_MEMORY = '/dev/shm';

const parent = hasRoom(IN_MEMORY) ? IN_MEMORY : tmpdir();

/** A new empty folder. The caller removes it. */
export function temporaryPath(): string {
  return mkdtempSync(join(parent, 'tds-test-'));
}

/** A new empty folder, and the function that removes it before its suite ends. */
export function temporaryFolder(): { path: string; remove: () => void } & AsyncDisposable {
  const path = temporaryPath();
  return owned(path, { path, remove: () => rmSync(path, { recursive: true, force: true }) }, 'remove');
}

function hasRoom(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize >= ENOUGH_BYTES;
  } catch {
    return false;
  }
}
