/** Runs once before all tests: service processes and signing threads run the build. */
exports.mochaGlobalSetup = () => {
  require('../../cli/build-if-changed.cjs');
};
