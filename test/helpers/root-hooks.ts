import { nothingIsLeftRunning } from './resources';

/** For Mocha's worker processes, which run several files each: checks after each file. */
export const mochaHooks = { afterAll: nothingIsLeftRunning };
