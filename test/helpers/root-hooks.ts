import { everyEventIsValid } from './receiver/event-violations';
import { nothingIsLeftRunning } from './resources';

/** For Mocha's worker processes, which run several files each. Both checks follow the last test of a file. */
export const mochaHooks = {
  afterEach: everyEventIsValid,
  afterAll: [nothingIsLeftRunning, everyEventIsValid],
};
