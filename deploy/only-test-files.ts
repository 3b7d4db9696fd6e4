import { dirname, resolve } from 'node:path';
import { TASK_TEST_GET_TEST_FILES } from 'hardhat/builtin-tasks/task-names';
import { subtask } from 'hardhat/config';

/**
 * Limits `npx hardhat test` to `*.test.ts`: Hardhat by itself takes every file under test/ for a test,
 * helpers included. Files of test/unit and test/integration need no Hardhat; `npx mocha` runs them, Hardhat
 * only if they are named.
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
