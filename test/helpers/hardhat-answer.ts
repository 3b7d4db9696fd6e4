import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { inheritedEnvironment } from '../../service/config';
import { PROJECT_ROOT } from '../../service/project-root';

/** What a command printed and how it ended. */
export interface HardhatAnswer {
  code: number | null;
  stdout: string;
  stderr: string;
}

const HARDHAT = require.resolve('hardhat/internal/cli/cli.js');

/**
 * Runs a task that answers with its exit code, as a user would: `npx hardhat …` in `cwd`, with `input` as
 * standard input.
 */
export async function askHardhat(
  args: string[],
  settings: Record<string, string>,
  { cwd = PROJECT_ROOT, input = '' }: { cwd?: string; input?: string | Buffer } = {},
): Promise<HardhatAnswer> {
  const env = { ...inheritedEnvironment(), ...settings };
  const child = spawn(process.execPath, [HARDHAT, ...args], { cwd, env, stdio: 'pipe' });
  // Not every command reads it: one that has ended by then is no failure.
  child.stdin.on('error', () => undefined).end(input);
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}
