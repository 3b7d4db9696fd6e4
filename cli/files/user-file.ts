import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { visit } from 'jsonc-parser';
import { codeOf, ConfigurationError, messageOf } from '../../service/base/errors';
import { findJsonError } from '../../service/base/json';
import { printable } from '../terminal/printable';

/** Stands for standard input in place of a file name. */
const STANDARD_INPUT = '-';

/**
 * Reads the JSON that a user names: a file, or `-` for standard input. Relative paths start at the user's
 * working directory.
 *
 * @throws ConfigurationError FILE_NOT_FOUND, FILE_UNREADABLE, FILE_NOT_JSON or FILE_AMBIGUOUS with line and
 *   column.
 */
export async function readJsonInput(path: string): Promise<unknown> {
  const name = path === STANDARD_INPUT ? 'standard input' : path;
  const bytes = await bytesOf(path);
  const text = decode(bytes, name);
  const value = parse(text, name);
  refuseRepetition(text, name);
  return value;
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

/**
 * Rejects bytes that are not UTF-8: they would silently become other characters, and be signed or verified as
 * such.
 */
function decode(bytes: Buffer, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw notJson(name, 'it is not text in UTF-8', cause);
  }
}

function parse(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    if (text.trim() === '') throw notJson(name, 'it is empty', cause);
    const error = findJsonError(text);
    const place = error && `line ${error.line}, column ${error.column}: ${error.problem}`;
    throw notJson(name, place ?? messageOf(cause), cause);
  }
}

/** Longest part of a name shown in a message; the file may come from a stranger. */
const LONGEST_NAME = 100;

function refuseRepetition(text: string, fileName: string): void {
  const found = findRepeatedName(text);
  if (found === undefined) return;
  const place = `line ${found.line}, column ${found.column}`;
  const remedy = 'Keep one of them: programs disagree about which one counts.';
  const name = printable(JSON.stringify(found.name), LONGEST_NAME);
  const message = `${fileName}, ${place}: ${name} occurs twice in its object. ${remedy}`;
  throw new ConfigurationError('FILE_AMBIGUOUS', message, { remedy });
}

function notJson(name: string, problem: string, cause: unknown): ConfigurationError {
  return new ConfigurationError('FILE_NOT_JSON', `${name} is not JSON: ${problem}.`, { cause });
}

/** The second occurrence of a name in an object. Line and column count from 1. */
interface RepeatedName {
  name: string;
  line: number;
  column: number;
}

/**
 * Finds a member that an object has twice. RFC 8259 (section 4) leaves open which one counts: a person sees
 * both, but a signature covers only the one that the parser takes.
 *
 * @param text JSON that was parsed already. The result is also undefined if it is nested too deeply for the
 *   stack.
 */
function findRepeatedName(text: string): RepeatedName | undefined {
  const open: Set<string>[] = [];
  let found: RepeatedName | undefined;
  try {
    visit(text, {
      onObjectBegin: () => void open.push(new Set()),
      onObjectEnd: () => void open.pop(),
      onObjectProperty: (name, _offset, _length, line, column) => {
        const names = open.at(-1);
        if (names?.has(name)) found ??= { name, line: line + 1, column: column + 1 };
        names?.add(name);
      },
    });
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
  }
  return found;
}
