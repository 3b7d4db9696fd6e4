import { existsSync, readFileSync } from 'node:fs';
import { parse } from 'dotenv';
import { readSettings } from '../../service/config/config';
import { ConfigurationError } from '../../service/base/errors';
import type { Settings } from '../../service/config/settings';
import { SECRET_MODE, withFileLock, writeFileAtomically } from './write-file';

/**
 * One assignment in dotenv's syntax: the text before the name, the name, the separator, the value with its
 * quotes. A quoted value may span lines; an unquoted one ends at a `#`.
 */
const ASSIGNMENT =
  /^([^\S\n]*(?:export\s+)?)([\w.-]+)(\s*=[^\S\n]*|:[^\S\n]+)('(?:\\'|[^'])*'|"(?:\\"|[^"])*"|`(?:\\`|[^`])*`|[^#\n]+)?[^\S\n]*(?:#.*)?$/gm;

/**
 * Values that need no quotes. `#` starts a comment, a space at an end is trimmed, and a quote opens a string.
 */
const PLAIN = /^[\w./:@%+=,-]+$/;

/**
 * Sets one variable of an env file and keeps every other line. The file is created if it is missing, replaced
 * atomically, and readable by its owner only.
 *
 * @throws ConfigurationError ENV_VALUE_UNWRITABLE if no spelling of the value reads back the same.
 */
export async function setEnvValue(path: string, name: string, value: string): Promise<void> {
  await withFileLock(path, () => {
    const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
    writeFileAtomically(path, withValue(before, name, value), SECRET_MODE);
  });
}

/**
 * Warns the user if an environment variable overrides the value that was just written to ENV_FILE. Undefined
 * if the service will read the new value.
 */
export function shadowWarning(name: string, value: string, environment?: Settings): string | undefined {
  const { envFile, settings } = readSettings(environment);
  if (settings[name] === value) return undefined;
  return (
    `warning: the environment variable ${name} is set and wins over ${envFile}: ` +
    'unset it to use the new value.'
  );
}

/** Returns the text of an env file with the variable set. */
export function withValue(text: string, name: string, value: string): string {
  for (const written of spellings(value)) {
    const changed = replaced(text, name, written);
    if (readsBack(text, changed, name, value)) return changed;
  }
  const message = `The value of ${name} cannot be written to an env file so that it reads back the same.`;
  throw new ConfigurationError('ENV_VALUE_UNWRITABLE', message, {
    remedy: `Set ${name} in the environment instead.`,
  });
}

/** Spellings of the value in an env file, simplest first. */
function spellings(value: string): string[] {
  const quoted = ["'", '`', '"'].map((quote) => `${quote}${value}${quote}`);
  return PLAIN.test(value) ? [value, ...quoted] : quoted;
}

function replaced(text: string, name: string, written: string): string {
  const assignments = [...text.matchAll(ASSIGNMENT)].filter((match) => match[2] === name);
  const last = assignments.pop();
  if (last === undefined) return appended(text, `${name}=${written}`);
  const [, indent = '', key = '', separator = '', old = ''] = last;
  const start = last.index + indent.length + key.length + separator.length;
  const gap = /\s+$/.exec(old)?.[0] ?? '';
  const changed = text.slice(0, start) + written + text.slice(start + old.length - gap.length);
  // dotenv takes the last assignment of a name. Earlier ones have no effect and may hold a secret that was
  // meant to be replaced.
  return assignments.reduceRight(withoutLine, changed);
}

function withoutLine(text: string, match: RegExpMatchArray): string {
  const start = match.index ?? 0;
  const end = start + match[0].length;
  return text.slice(0, start) + text.slice(text[end] === '\n' ? end + 1 : end);
}

function appended(text: string, line: string): string {
  const newline = text.includes('\r\n') ? '\r\n' : '\n';
  const gap = text === '' || text.endsWith('\n') ? '' : newline;
  return `${text}${gap}${line}${newline}`;
}

function readsBack(before: string, after: string, name: string, value: string): boolean {
  const expected = { ...parse(before), [name]: value };
  const actual = parse(after);
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...names].every((key) => actual[key] === expected[key]);
}
