import { format } from 'node:util';
import { runTdoc } from '../../../cli/program';
import { systemTime, type Time } from '../../../service/base/time';
import { inheritedEnvironment } from '../../../service/config/config';
import { settled } from '../virtual-time';
import type { CommandAnswer } from './command-answer';
import { outputOf } from './command-output';

/**
 * Runs `npx tdoc …` in this process, without a terminal and without the masking of standard error. Only
 * one command may run at a time, because the process has its settings meanwhile.
 */
export function askTdocInProcess(
  args: string[],
  settings: Record<string, string>,
  { time = systemTime, ...surroundings }: { cwd?: string; time?: Time } = {},
): Promise<CommandAnswer> {
  // A process gets its arguments in UTF-8, which has no half of a surrogate pair.
  const received = args.map((argument) => Buffer.from(argument).toString());
  return answerOf(() => settled(time, runTdoc(received, time)), settings, surroundings);
}

/** The answer of what runs commands in this process with these settings. */
export async function answerOf(
  work: () => Promise<unknown>,
  settings: Record<string, string>,
  { cwd }: { cwd?: string } = {},
): Promise<CommandAnswer> {
  const before = process.cwd();
  const printed = { stdout: '', stderr: '' };
  const undo = [
    replace(process, { env: { ...inheritedEnvironment(), ...settings }, exitCode: undefined }),
    replace(process.stdin, { isTTY: false }),
    replace(console, { log: (...parts: unknown[]) => void (printed.stdout += `${format(...parts)}\n`) }),
    replace(process.stderr, {
      write(chunk: string | Uint8Array): boolean {
        printed.stderr += Buffer.from(chunk).toString();
        return true;
      },
    }),
  ];
  try {
    if (cwd !== undefined) process.chdir(cwd);
    await work();
    return { code: Number(process.exitCode ?? 0), ...printed };
  } finally {
    for (const restore of undo) restore();
    process.chdir(before);
  }
}

/** Changes properties; the result changes them back. */
export function replace(object: object, changes: Record<string, unknown>): () => void {
  const before = Object.keys(changes).map((name) => [name, Reflect.get(object, name) as unknown] as const);
  Object.assign(object, changes);
  return () => void Object.assign(object, Object.fromEntries(before));
}

/** The same, but returns its standard output. Rejects unless it exits with 0. */
export const tdocInProcess = outputOf(askTdocInProcess);
