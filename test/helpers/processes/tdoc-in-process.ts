import { format } from 'node:util';
import { runTdoc } from '../../../cli/program';
import { inheritedEnvironment } from '../../../service/config/config';
import type { CommandAnswer } from './command-answer';

/**
 * Runs `npx tdoc …` in this process, without standard input and without the masking of standard error. Only
 * one command may run at a time, because the process has its settings meanwhile.
 */
export async function askTdocInProcess(
  args: string[],
  settings: Record<string, string>,
): Promise<CommandAnswer> {
  const { env, exitCode } = process;
  const { log, error } = console;
  const printed = { stdout: '', stderr: '' };
  const into =
    (stream: keyof typeof printed) =>
    (...parts: unknown[]): void =>
      void (printed[stream] += `${format(...parts)}\n`);
  try {
    process.env = { ...inheritedEnvironment(), ...settings };
    process.exitCode = undefined;
    console.log = into('stdout');
    console.error = into('stderr');
    await runTdoc(args);
    return { code: Number(process.exitCode ?? 0), ...printed };
  } finally {
    Object.assign(console, { log, error });
    process.exitCode = exitCode;
    process.env = env;
  }
}
