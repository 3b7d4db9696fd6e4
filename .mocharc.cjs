const { availableParallelism } = require('node:os');

// Mocha runs test/unit and test/integration without Hardhat. hardhat.config.ts has the options of the others.
module.exports = {
  require: ['./test/helpers/build-first.cjs', 'ts-node/register', './test/helpers/root-hooks.ts'],
  reporter: './test/reporter.cjs',
  // Long enough for a busy machine: it ends tests that hang, and measures nothing.
  timeout: 300_000,
  jobs: Math.max(4, availableParallelism()),
};
