import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { inheritedEnvironment } from '../../service/config';
import { PROJECT_ROOT } from '../../service/project-root';

const HARDHAT = require.resolve('hardhat/internal/cli/cli.js');
const run = promisify(execFile);

/**
 * Runs `npx hardhat …` as a user would, with these settings and none of the developer's own. Rejects unless
 * it exits with 0.
 */
export async function hardhat(args: string[], settings: Record<string, string>): Promise<string> {
  const env = { ...inheritedEnvironment(), ...settings };
  const { stdout } = await run(process.execPath, [HARDHAT, ...args], { cwd: PROJECT_ROOT, env });
  return stdout;
}
