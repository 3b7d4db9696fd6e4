import { dirname, resolve } from 'node:path';
import { TASK_TEST_GET_TEST_FILES } from 'hardhat/builtin-tasks/task-names';
import { subtask } from 'hardhat/config';

/**
 * `npx hardhat test` runs `*.test.ts` only: Hardhat by itself takes every file under test/, helpers included,
 * for a test. Those of test/unit and test/integration need no Hardhat and are left to `npx mocha`, unless
 * they are named.
 */
subtask(
  TASK_TEST_GET_TEST_FILES,
  async (args: { testFiles: string[] }, { config }, runSuper): Promise<string[]> => {
    const files = (await runSuper(args)) as string[];
    if (args.testFiles.length > 0) return files;
    const ofMocha = ['unit', 'integration'].map((folder) => resolve(config.paths.tests, folder));
    return files.filter((file) => file.endsWith('.test.ts') && !ofMocha.includes(dirname(file)));
  },
);
