import { spawnSync } from 'node:child_process';
import { TASK_TEST } from 'hardhat/builtin-tasks/task-names';
import { task } from 'hardhat/config';

interface TestArguments {
  testFiles: string[];
  parallel: boolean;
  bail: boolean;
  grep?: string;
}

// Hardhat's own task would not read .mocharc.cjs, and runs root hooks in workers only.
task(
  TASK_TEST,
  'Runs Mocha, as `npx mocha` does',
  ({ testFiles, parallel, bail, grep }: TestArguments): Promise<void> => {
    const flags = Object.entries({ parallel, bail }).flatMap(([name, isSet]) => (isSet ? [`--${name}`] : []));
    const mocha = [require.resolve('mocha/bin/mocha.js'), ...flags, ...(grep ? ['--grep', grep] : [])];
    const { status } = spawnSync(process.execPath, [...mocha, ...testFiles], { stdio: 'inherit' });
    process.exitCode = status ?? 1;
    return Promise.resolve();
  },
);
