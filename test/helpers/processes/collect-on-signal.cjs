/* global process */
const v8 = require('node:v8');
const vm = require('node:vm');

// A process that loads this file first collects its garbage at SIGUSR2, and prints what is left, in bytes.

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc');

process.on('SIGUSR2', () => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  process.stdout.write(`${JSON.stringify({ collected: heapUsed + external })}\n`);
});
