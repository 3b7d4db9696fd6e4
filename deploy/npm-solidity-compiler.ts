import { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } from 'hardhat/builtin-tasks/task-names';
import { subtask } from 'hardhat/config';
import type { SolcBuild } from 'hardhat/types';

/** The compiler version pinned in package.json as the `solc` npm package. */
export const SOLIDITY_VERSION = '0.8.22';

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
