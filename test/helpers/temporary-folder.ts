import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { track } from './resources';

/** Enough space for the largest test. */
const ENOUGH_BYTES = 2e9;
/** A file system in memory (Linux): databases commit there without waiting for a disk. */
const IN_MEMORY = '/dev/shm';

const parent = hasRoom(IN_MEMORY) ? IN_MEMORY : tmpdir();

/** A new empty folder. The caller removes it. */
export function temporaryPath(): string {
  return mkdtempSync(join(parent, 'tds-test-'));
}

/** A new empty folder, and the function that removes it. */
export function temporaryFolder(): { path: string; remove: () => void } {
  const path = temporaryPath();
  const untrack = track(path);
  return {
    path,
    remove() {
      rmSync(path, { recursive: true, force: true });
      untrack();
    },
  };
}

function hasRoom(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize >= ENOUGH_BYTES;
  } catch {
    return false;
  }
}
