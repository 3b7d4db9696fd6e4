import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const PROGRAMS = ['node', 'service'];
const LINES = 10;

/** The last lines that each program of a run has logged, to explain a failure. */
export function logTails(folder: string): string {
  return PROGRAMS.map((name) => join(folder, `${name}.log`))
    .filter((file) => existsSync(file))
    .map((file) => `--- ${file}\n${tailOf(readFileSync(file, 'utf8'))}`)
    .join('\n');
}

function tailOf(text: string): string {
  return text.trimEnd().split('\n').slice(-LINES).join('\n');
}
