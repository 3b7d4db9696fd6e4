import { everyEventIsValid } from './receiver/event-violations';
import { nothingIsLeftRunning } from './resources';

// Writing coverage takes more than a second. The pool then sends SIGTERM, which would cut the writing off.
if (process.env.NODE_V8_COVERAGE !== undefined) process.on('SIGTERM', () => process.exit());

/** For Mocha's worker processes, which run several files each. Both checks follow the last test of a file. */
export const mochaHooks = {
  afterEach: everyEventIsValid,
  afterAll: [nothingIsLeftRunning, everyEventIsValid],
};
