import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { sync as writeAtomically } from 'write-file-atomic';

/** Access rights of a file: its owner only, or everybody for reading. */
export const SECRET_MODE = 0o600;
export const PUBLIC_MODE = 0o644;

/**
 * Writes a whole file or nothing: into a temporary file beside it, flushed to the disk, then renamed over it.
 * The folder is created, and a symbolic link is followed.
 */
export function writeFileAtomically(path: string, content: string, mode: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeAtomically(path, content, { mode });
}
