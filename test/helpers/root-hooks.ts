import { nothingIsLeftRunning } from './resources';

/** For Mocha's worker processes, which run several files each: after each of them. */
export const mochaHooks = { afterAll: nothingIsLeftRunning };
