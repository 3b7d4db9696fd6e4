import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { track } from './resources';

/** A new empty folder, and how to remove it. */
export function temporaryFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'tds-test-'));
  const untrack = track(path);
  return {
    path,
    remove() {
      rmSync(path, { recursive: true, force: true });
      untrack();
    },
  };
}
