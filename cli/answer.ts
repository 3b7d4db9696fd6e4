import { inspect } from 'node:util';
import type { Command } from 'commander';
import { errorLines, hintFor, maskKnown, maskSecrets, Refusal } from './errors';
import { escaped, printable } from '../service/base/printable';
import { printableJson } from './terminal/printable';

/** The exit codes of every command (docs/cli.md). */
export const EXIT_CODES = { yes: 0, no: 1, failed: 2 } as const;

/**
 * The answer of a command.
 *
 * - `lines`: for people. Each is made printable.
 * - `json`: the same for programs.
 * - `isJsonLines`: `json` is an array; each entry is printed on a line of its own.
 * - `isForAll`: people get `json` too, in place of `lines`.
 * - `isYes`: whether the answer is yes; undefined: not known.
 * - `remarks`: lines about the answer, for standard error.
 */
export interface Answer {
  lines: string[];
  json: unknown;
  isJsonLines?: true;
  isForAll?: boolean;
  isYes: boolean | undefined;
  remarks?: string[];
}

/** Prints a line of progress for people. */
export type Say = (line: string) => void;

// Nothing else prints in a command, because a line may hold what strangers wrote.
/** Prints a line on standard output. */
export const print: Say = (line) => console.log(printable(line));
/** Prints a line on standard error. Masked before it is cut: part of a secret would not be recognised. */
export const tell: Say = (line) => console.error(printable(maskKnown(line)));
/** The same for a line that is copied, such as one with a cursor: it is not cut. */
export const tellWhole: Say = (line) => console.error(escaped(maskKnown(line)));
/** Prints an entry of an answer that goes on, as JSON on a line. */
export function printEntry(entry: object): void {
  console.log(printableJson(entry, 0));
}

const QUIET_MS = 2_000;

/**
 * Makes a command's action: it runs the work for the arguments and the options, prints the answer and sets
 * the exit code: 0 for done or yes, 1 for no or refused, 2 if it failed or the answer is not known.
 *
 * With `--json` standard output has one JSON value, also for a refusal, but nothing if the command fails;
 * lines for people go to standard error. So does an error, with a stack trace only on request. A command that
 * takes longer than two seconds prints a progress line.
 */
export function answering<A extends unknown[]>(
  workFor: (...args: A) => (say: Say) => Promise<Answer>,
): (...args: [...A, Command]) => Promise<void> {
  return async (...all) => {
    const command = all.pop() as Command;
    const { json: isJson = false, stackTraces = false } = command.optsWithGlobals<Flags>();
    const timer = setTimeout(tellThatItWorks, QUIET_MS, command.name());
    try {
      const work = workFor(...(all as unknown as A));
      const answer = await work(isJson ? tell : print);
      answer.remarks?.forEach(tell);
      const isForPrograms = isJson || answer.isForAll === true;
      const lines = isForPrograms ? jsonOf(answer) : answer.lines;
      lines.forEach(isForPrograms ? (json) => console.log(json) : print);
      hintFor(lines.join('\n')).forEach(tell);
      process.exitCode =
        answer.isYes === undefined ? EXIT_CODES.failed : EXIT_CODES[answer.isYes ? 'yes' : 'no'];
    } catch (thrown) {
      const isRefused = thrown instanceof Refusal;
      process.exitCode = isRefused ? EXIT_CODES.no : EXIT_CODES.failed;
      if (isRefused && isJson) {
        const refusal = refusalJson(thrown);
        console.log(refusal);
        hintFor(refusal).forEach(tell);
      } else (stackTraces ? inspect(thrown).split('\n') : errorLines(thrown)).forEach(tell);
    } finally {
      clearTimeout(timer);
    }
  };
}

interface Flags {
  json?: true;
  stackTraces?: true;
}

function jsonOf({ json, isJsonLines }: Answer): string[] {
  return isJsonLines ? (json as unknown[]).map((entry) => printableJson(entry, 0)) : [printableJson(json)];
}

/** Standard output is not masked otherwise. */
function refusalJson(refusal: Refusal): string {
  const { code, reason, message, remedy } = refusal;
  return maskSecrets(printableJson({ outcome: 'refused', code, reason, message, remedy }));
}

/** Only on a terminal: scripts read standard error too. */
function tellThatItWorks(name: string): void {
  if (process.stderr.isTTY) tell(`${name}: still working …`);
}
