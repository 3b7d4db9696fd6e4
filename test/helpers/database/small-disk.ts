import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { owned } from '../resources';

/** A file system that is soon full. */
export interface SmallDisk {
  path: string;
  /** Makes room. */
  grow(): void;
}

/** A new file system of 2 MB at this path; undefined where mounting is not permitted. */
export function smallDisk(path: string): (SmallDisk & AsyncDisposable) | undefined {
  const mount = (options: string): void =>
    void execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path], { stdio: 'ignore' });
  mkdirSync(path);
  try {
    mount('size=2m');
  } catch {
    return undefined;
  }
  const disk = {
    path,
    grow: () => mount('remount,size=16m'),
    // libsql closes a file when its last statement is collected.
    remove: () => execFileSync('umount', ['--lazy', path]),
  };
  return owned(`file system at ${path}`, disk, 'remove');
}
