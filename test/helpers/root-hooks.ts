import * as numbers from '@nomicfoundation/hardhat-chai-matchers/internal/bigNumber';
import { checkAnswers } from './described-answers';
import { nothingIsLeftRunning } from './resources';
import { everythingIsAsDescribed } from './violations';

// Writing coverage takes more than a second. The pool then sends SIGTERM, which would cut the writing off.
process.on('SIGTERM', () => process.exit(143));

checkAnswers();

// Hardhat's plug-in would make '1', 1 and 1n equal in files that run after one that loads Hardhat. It also
// searches packages that are not installed for each value that is compared, which is slow.
Object.assign(numbers, { supportBigNumber: () => undefined });

/** For Mocha's worker processes, which run several files each. Both checks follow the last test of a file. */
export const mochaHooks = {
  afterEach: everythingIsAsDescribed,
  afterAll: [nothingIsLeftRunning, everythingIsAsDescribed],
};
