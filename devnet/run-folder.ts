import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Makes a fresh folder for this run under `parent`, named for the process, and removes the folders of runs
 * that have ended; other files and folders stay. Two devnets at the same time do not disturb each other, and
 * the logs of a run last until the next one.
 */
export function makeRunFolder(parent: string, pid: number = process.pid): string {
  if (existsSync(parent)) {
    for (const name of readdirSync(parent)) {
      if (/^\d+$/.test(name) && !isRunning(Number(name)))
        rmSync(join(parent, name), { recursive: true, force: true });
    }
  }
  const folder = join(parent, String(pid));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** Whether there is a process with this id. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
