import { everyEventIsValid } from './receiver/event-violations';
import { nothingIsLeftRunning } from './resources';

// Writing coverage takes more than a second. The pool then sends SIGTERM, which would cut the writing off.
process.on('SIGTERM', () => process.exit(143));

/** For Mocha's worker processes, which run several files each. Both checks follow the last test of a file. */
export const mochaHooks = {
  afterEach: everyEventIsValid,
  afterAll: [nothingIsLeftRunning, everyEventIsValid],
};
