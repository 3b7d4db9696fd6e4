import { closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { sync as writeAtomically } from 'write-file-atomic';
import { codeOf, ConfigurationError, messageOf } from '../../service/base/errors';

/** Mode of a file: readable by its owner only, or readable by everybody. */
export const SECRET_MODE = 0o600;
export const PUBLIC_MODE = 0o644;

/**
 * Writes a whole file or nothing: it writes a temporary file beside it, flushes it to disk and renames it.
 * Missing folders are created and symbolic links are followed.
 *
 * @throws ConfigurationError FILE_UNWRITABLE
 */
export function writeFileAtomically(path: string, content: string, mode: number): void {
  refuseUnwritable(path);
  try {
    writeAtomically(path, content, { mode });
  } catch (cause) {
    throw unwritable(path, cause);
  }
}

/**
 * Refuses a file that cannot be written: its folder allows none, or its owner made it read-only. A rename
 * would replace such a file all the same, also for root.
 *
 * @throws ConfigurationError FILE_UNWRITABLE
 */
export function refuseUnwritable(path: string): void {
  const trial = `${path}.${process.pid}.tmp`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    closeSync(openSync(trial, 'wx'));
    rmSync(trial);
  } catch (cause) {
    throw unwritable(path, cause);
  }
  const { mode = 0o200 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  if ((mode & 0o200) !== 0) return;
  const remedy = `If it is to be replaced, run \`chmod u+w ${path}\` first.`;
  throw new ConfigurationError('FILE_UNWRITABLE', `${path} is read-only.`, { remedy });
}

/** The error for a file that cannot be created or replaced. */
export function unwritable(path: string, cause: unknown): ConfigurationError {
  const isForbidden = ['EACCES', 'EEXIST', 'ENOTDIR', 'EPERM', 'EROFS'].includes(codeOf(cause) ?? '');
  const remedy = `Let the user of this command write to ${dirname(path)}, or name another file.`;
  const message = `${path} cannot be written: ${messageOf(cause)}.`;
  return new ConfigurationError('FILE_UNWRITABLE', message, isForbidden ? { cause, remedy } : { cause });
}
