import { TASK_TEST_GET_TEST_FILES } from 'hardhat/builtin-tasks/task-names';
import { subtask } from 'hardhat/config';

/**
 * `npx hardhat test` runs `*.test.ts` only: Hardhat by itself takes every file under test/, helpers included,
 * for a test.
 */
subtask(
  TASK_TEST_GET_TEST_FILES,
  async (args: { testFiles: string[] }, _hre, runSuper): Promise<string[]> => {
    const files = (await runSuper(args)) as string[];
    return args.testFiles.length > 0 ? files : files.filter((file) => file.endsWith('.test.ts'));
  },
);
