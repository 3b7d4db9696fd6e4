const { availableParallelism } = require('node:os');

// Mocha alone runs test/unit and test/integration, which need no Hardhat. hardhat.config.ts configures the rest.
module.exports = {
  require: ['ts-node/register', './test/helpers/root-hooks.ts'],
  reporter: './test/reporter.cjs',
  // Long enough for a busy machine: it ends what hangs, and measures nothing.
  timeout: 300_000,
  jobs: Math.max(3, availableParallelism() - 1),
};
