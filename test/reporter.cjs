/* global console, process */
const { relative } = require('node:path');
const { reporters, Runner } = require('mocha');

const SHOWN = 10;
const EACH = /^"(before|after) each" hook/;
const { EVENT_HOOK_END, EVENT_RUN_END, EVENT_TEST_END } = Runner.constants;

/** Mocha's `spec` reporter; it ends with the files that took longest, in seconds. */
module.exports = class SpecWithSlowestFiles extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const milliseconds = new Map();
    for (const event of [EVENT_TEST_END, EVENT_HOOK_END])
      runner.on(event, ({ file, title, duration = 0 }) => {
        // A worker process reports the last duration of a hook of each test for all of its runs.
        if (file && !EACH.test(title)) milliseconds.set(file, (milliseconds.get(file) ?? 0) + duration);
      });
    runner.once(EVENT_RUN_END, () => {
      if (milliseconds.size < 2) return;
      const slowest = [...milliseconds].sort(([, left], [, right]) => right - left).slice(0, SHOWN);
      console.log('  the slowest files:');
      for (const [file, ms] of slowest)
        console.log(`  ${(ms / 1000).toFixed(1).padStart(7)} s  ${relative(process.cwd(), file)}`);
      console.log();
    });
  }
};
