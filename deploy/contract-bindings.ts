import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { TASK_COMPILE, TASK_COMPILE_SOLIDITY_LOG_COMPILATION_RESULT } from 'hardhat/builtin-tasks/task-names';
import { subtask, task } from 'hardhat/config';
import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import { PROJECT_ROOT } from '../service/base/project-root';
import { withFileLock } from '../cli/files/write-file';

/**
 * Generates the contracts' bindings, which a fresh checkout lacks. Hardhat loads every task for every
 * command, so a task that needs the bindings calls this first and imports its code afterwards.
 */
export async function makeBindings(hre: HardhatRuntimeEnvironment): Promise<void> {
  if (!existsSync(join(PROJECT_ROOT, 'typechain-types')))
    await hre.run(TASK_COMPILE, { quiet: true, force: true });
}

/** A compilation takes half a minute on a slow machine. */
const COMPILATION_PATIENCE_MS = 120_000;

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
