/* global process */
// Builds before the first test file is loaded: service processes and signing threads run the build.
if (process.env.MOCHA_WORKER_ID === undefined) {
  require('../../cli/build-if-changed.cjs');
  const { NODE_OPTIONS = '' } = process.env;
  process.env.NODE_OPTIONS = `${NODE_OPTIONS} --require=${require.resolve('./compile-cache.cjs')}`.trim();
}
