// Mocha runs every `*.test.ts` in test/, or the files and folders that it is given.
module.exports = {
  extension: ['.test.ts'],
  recursive: true,
  require: ['./test/helpers/build-first.cjs', 'ts-node/register', './test/helpers/root-hooks.ts'],
  reporter: './test/reporter.cjs',
  // Long enough for a busy machine: it ends tests that hang, and measures nothing.
  timeout: 300_000,
  // Files often wait for the processes that they started. With four on two processors, services miss the time
  // limits of tests.
  jobs: 3,
};
