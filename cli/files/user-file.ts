import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { codeOf, ConfigurationError, messageOf } from '../../service/base/errors';
import { parseJson, scanJson } from '../../service/base/json';

/** Stands for standard input in place of a file name. */
const STANDARD_INPUT = '-';

/** Deeper than any document, and far from where programs run out of stack. */
const DEEPEST = 1_000;

/**
 * Reads the JSON that a user names: a file, or `-` for standard input. Relative paths start at the user's
 * working directory.
 *
 * @throws ConfigurationError FILE_NOT_FOUND, FILE_UNREADABLE, FILE_NOT_JSON with line and column, or
 *   FILE_AMBIGUOUS with a JSON pointer.
 */
export async function readJsonInput(path: string): Promise<unknown> {
  const name = path === STANDARD_INPUT ? 'standard input' : path;
  const bytes = await bytesOf(path);
  const value = parseJson(bytes, (problem, cause) => {
    return new ConfigurationError('FILE_NOT_JSON', `${name} is not JSON: ${problem}.`, { cause });
  });
  const { repeated, depth } = scanJson(bytes, { mostDepth: DEEPEST });
  if (depth > DEEPEST)
    throw new ConfigurationError(
      'FILE_UNREADABLE',
      `${name} cannot be read: it is nested deeper than ${DEEPEST} levels.`,
    );
  if (repeated === undefined) return value;
  const remedy = 'Keep one of them: programs disagree about which one counts.';
  const message = `${name}: ${JSON.stringify(repeated)} occurs twice in its object. ${remedy}`;
  throw new ConfigurationError('FILE_AMBIGUOUS', message, { remedy });
}

/** Reads the bytes of a file that a user names, or of standard input (`-`). */
export async function bytesOf(path: string): Promise<Buffer> {
  if (path === STANDARD_INPUT) return buffer(process.stdin);
  try {
    return await readFile(resolve(path));
  } catch (cause) {
    if (codeOf(cause) !== 'ENOENT' && codeOf(cause) !== 'ENOTDIR')
      throw new ConfigurationError('FILE_UNREADABLE', `${path} cannot be read: ${messageOf(cause)}.`, {
        cause,
      });
    const remedy = 'Relative paths start at the current folder; - is standard input.';
    throw new ConfigurationError('FILE_NOT_FOUND', `There is no file ${resolve(path)}.`, { cause, remedy });
  }
}
