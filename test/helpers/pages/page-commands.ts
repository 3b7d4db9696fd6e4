import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '../../../service/config/config';
import { PROJECT_ROOT } from '../../../service/base/project-root';
import { eventually } from '../eventually';
import type { CommandAnswer } from '../processes/command-answer';
import { askHardhatInProcess } from '../processes/hardhat-in-process';
import { askTdocInProcess } from '../processes/tdoc-in-process';
import { stopLater } from '../resources';

const run = promisify(execFile);

/** A program that the reader of a page starts and leaves running. */
export interface PageProgram extends AsyncDisposable {
  /** The output so far. */
  output(): string;
  /** Ends it as the reader would, and returns its exit code. */
  stop(): Promise<number | null>;
}

/**
 * Runs commands of a page in a shell in the project's folder, without the developer's settings. Rejects
 * unless it exits with 0.
 */
export async function runAsWritten(commands: string, settings: Record<string, string> = {}): Promise<string> {
  const env = { ...inheritedEnvironment(), ...settings };
  const { stdout } = await run('sh', ['-euc', commands], { cwd: PROJECT_ROOT, env });
  return stdout;
}

/**
 * Runs one command of a page, such as `ENV_FILE=a.env npx tdoc did`, in this process, because starting and
 * loading take longer than most commands.
 */
export async function askAsWritten(
  command: string,
  settings: Record<string, string>,
): Promise<CommandAnswer> {
  const [, own = '', program, args = ''] = /^((?:\w+=\S+ )*)npx (tdoc|hardhat) (.*)$/.exec(command) ?? [];
  if (program === undefined) throw new Error(`neither npx tdoc nor npx hardhat: ${command}`);
  const ask = program === 'tdoc' ? askTdocInProcess : askHardhatInProcess;
  const all = { ...settings };
  for (const [, name = '', value = ''] of own.matchAll(/(\w+)=(\S+)/g)) all[name] = value;
  return ask(args.split(' '), all);
}

/** Starts one command of a page, and waits until it prints that it listens. */
export async function startAsWritten(
  command: string,
  settings: Record<string, string> = {},
): Promise<PageProgram> {
  // Signals must reach the program, not the shell that starts it.
  const child = spawn('sh', ['-c', command.replace(/\bnode /, 'exec node ')], {
    cwd: PROJECT_ROOT,
    env: { ...inheritedEnvironment(), ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const stop = stopLater(command, () => {
    child.kill('SIGTERM');
    return ended;
  });
  await eventually(`listening: ${command}`, () => {
    if (child.exitCode !== null) throw new Error(output);
    return /"listening"/.test(output);
  });
  return { output: () => output, stop, [Symbol.asyncDispose]: async () => void (await stop()) };
}
