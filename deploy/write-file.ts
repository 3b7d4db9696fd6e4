import {
  closeSync,
  fchmodSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { basename, dirname, join } from 'node:path';

/** Access rights of a file: its owner only, or everybody for reading. */
export const SECRET_MODE = 0o600;
export const PUBLIC_MODE = 0o644;

/**
 * Writes a whole file or nothing: into a temporary file beside it, flushed to the disk, then renamed over it.
 * The folder is created, a symbolic link is followed, and the mode is set before the content is there.
 */
export function writeFileAtomically(path: string, content: string, mode: number): void {
  const target = realPathOf(path);
  const folder = dirname(target);
  mkdirSync(folder, { recursive: true });
  const temporary = join(folder, `.${basename(target)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    writeDurably(temporary, content, mode);
    renameSync(temporary, target);
  } catch (thrown) {
    rmSync(temporary, { force: true });
    throw thrown;
  }
}

function writeDurably(path: string, content: string, mode: number): void {
  const file = openSync(path, 'wx', mode);
  try {
    // The process's umask may have taken bits away.
    fchmodSync(file, mode);
    writeSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
