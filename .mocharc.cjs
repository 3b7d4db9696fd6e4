const { availableParallelism } = require('node:os');

// Mocha runs what needs no Hardhat (test/unit) by itself; hardhat.config.ts has what it is told for the rest.
module.exports = {
  require: ['ts-node/register', './test/helpers/root-hooks.ts'],
  // Long enough for a busy machine: it ends what hangs, and measures nothing.
  timeout: 300_000,
  jobs: Math.max(3, availableParallelism() - 1),
};
