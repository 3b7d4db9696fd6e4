import { format } from 'node:util';
import { runTdoc } from '../../../cli/program';
import { inheritedEnvironment } from '../../../service/config/config';
import type { CommandAnswer } from './command-answer';

/**
 * Runs `npx tdoc …` in this process. What only a process has is left out: its standard input, and the masking
 * of its standard error. One at a time: the settings are those of the process meanwhile.
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
