import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { inheritedEnvironment } from '../../../service/config/config';
import { PROJECT_ROOT } from '../../../service/base/project-root';

/** The output of a command and its exit code. */
export interface CommandAnswer {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface Surroundings {
  cwd?: string;
  /** Standard input. */
  input?: string | Buffer;
}

type Ask = (
  args: string[],
  settings: Record<string, string>,
  surroundings?: Surroundings,
) => Promise<CommandAnswer>;

const HARDHAT = require.resolve('hardhat/internal/cli/cli.js');
const TDOC = join(PROJECT_ROOT, 'dist/cli/main.js');

/** Runs `npx hardhat …` as a user would, with these settings and none of the developer's own. */
export const askHardhat: Ask = (...rest) => ask(HARDHAT, ...rest);

/** The same for `npx tdoc …`, from the build. */
export const askTdoc: Ask = (...rest) => ask(TDOC, ...rest);

/** The same for a file of JavaScript. */
export async function ask(
  program: string,
  args: string[],
  settings: Record<string, string>,
  { cwd = PROJECT_ROOT, input = '' }: Surroundings = {},
): Promise<CommandAnswer> {
  const env = { ...inheritedEnvironment(), ...settings };
  const child = spawn(process.execPath, [program, ...args], { cwd, env, stdio: 'pipe' });
  // Not every command reads its input. It is no failure if the command has ended by then.
  child.stdin.on('error', () => undefined).end(input);
  const ended = once(child, 'close') as Promise<[number | null]>;
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}
