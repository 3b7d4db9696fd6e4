import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { sync as writeAtomically } from 'write-file-atomic';

/** Mode of a file: readable by its owner only, or readable by everybody. */
export const SECRET_MODE = 0o600;
export const PUBLIC_MODE = 0o644;

/**
 * Writes a whole file or nothing: it writes a temporary file beside it, flushes it to disk and renames it.
 * Missing folders are created and symbolic links are followed.
 */
export function writeFileAtomically(path: string, content: string, mode: number): void {
  mkdirSync(dirname(path), { recursive: true });
  writeAtomically(path, content, { mode });
}
