import { join } from 'node:path';
import {
  TASK_COMPILE,
  TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD,
  TASK_COMPILE_SOLIDITY_LOG_COMPILATION_RESULT,
} from 'hardhat/builtin-tasks/task-names';
import { subtask, task } from 'hardhat/config';
import type { SolcBuild } from 'hardhat/types';
import { withFileLock } from '../cli/files/write-file';

/** The compiler version pinned in package.json as the `solc` npm package. */
export const SOLIDITY_VERSION = '0.8.22';

/** A compilation takes half a minute on a slow machine. */
const COMPILATION_PATIENCE_MS = 120_000;

/**
 * Compiles with the `solc` npm package instead of a binary that Hardhat would download. The lock file pins
 * the package and `npm ci` installs it, so the bytecode depends on the lock file alone and compiling needs no
 * network.
 */
subtask(
  TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD,
  async (args: { solcVersion: string }, _hre, runSuper): Promise<SolcBuild> => {
    if (args.solcVersion !== SOLIDITY_VERSION) return (await runSuper(args)) as SolcBuild;
    return {
      version: SOLIDITY_VERSION,
      longVersion: `${SOLIDITY_VERSION}+commit.4fc1097e`,
      compilerPath: require.resolve('solc/soljson.js'),
      isSolcJs: true,
    };
  },
);

/**
 * Commands that compile may run at the same time. Without a lock Hardhat would discard its cache when it
 * finds it half-written by another command.
 */
task(TASK_COMPILE, async (args: object, hre, runSuper) =>
  withFileLock(
    join(hre.config.paths.cache, 'compile'),
    () => runSuper(args) as Promise<void>,
    COMPILATION_PATIENCE_MS,
  ),
);

/**
 * Hardhat prints that it compiled even when told to be quiet. That line would break the output of commands
 * that print JSON.
 */
subtask(
  TASK_COMPILE_SOLIDITY_LOG_COMPILATION_RESULT,
  async ({ quiet }: { quiet: boolean }, _hre, runSuper): Promise<void> => {
    if (!quiet) await runSuper();
  },
);
