import { format } from 'node:util';
import { runTdoc } from '../../../cli/program';
import { inheritedEnvironment } from '../../../service/config/config';
import type { CommandAnswer } from './command-answer';
import { outputOf } from './command-output';

/**
 * Runs `npx tdoc …` in this process, without a terminal and without the masking of standard error. Only
 * one command may run at a time, because the process has its settings meanwhile.
 */
export async function askTdocInProcess(
  args: string[],
  settings: Record<string, string>,
  { cwd }: { cwd?: string } = {},
): Promise<CommandAnswer> {
  const before = process.cwd();
  const { env, exitCode } = process;
  const { log, error } = console;
  const { isTTY } = process.stdin;
  const printed = { stdout: '', stderr: '' };
  const into =
    (stream: keyof typeof printed) =>
    (...parts: unknown[]): void =>
      void (printed[stream] += `${format(...parts)}\n`);
  try {
    process.env = { ...inheritedEnvironment(), ...settings };
    process.exitCode = undefined;
    if (cwd !== undefined) process.chdir(cwd);
    process.stdin.isTTY = false;
    console.log = into('stdout');
    console.error = into('stderr');
    await runTdoc(args);
    return { code: Number(process.exitCode ?? 0), ...printed };
  } finally {
    Object.assign(console, { log, error });
    process.stdin.isTTY = isTTY;
    process.exitCode = exitCode;
    process.env = env;
    process.chdir(before);
  }
}

/** The same, but returns its standard output. Rejects unless it exits with 0. */
export const tdocInProcess = outputOf(askTdocInProcess);
