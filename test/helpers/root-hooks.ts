import { checkAnswers } from './described-answers';
import { nothingIsLeftRunning } from './resources';
import { everythingIsAsDescribed } from './violations';

// Writing coverage takes more than a second. The pool then sends SIGTERM, which would cut the writing off.
process.on('SIGTERM', () => process.exit(143));

checkAnswers();

/** For Mocha's worker processes, which run several files each. Both checks follow the last test of a file. */
export const mochaHooks = {
  afterEach: everythingIsAsDescribed,
  afterAll: [nothingIsLeftRunning, everythingIsAsDescribed],
};
