import * as numbers from '@nomicfoundation/hardhat-chai-matchers/internal/bigNumber';
import type { Context, Test } from 'mocha';
import { checkAnswers } from './described-answers';
import { give, stopAll, stopWithSuites } from './resources';
import { everythingIsAsDescribed } from './violations';

// Writing coverage takes more than a second. The pool then sends SIGTERM, which would cut the writing off.
process.on('SIGTERM', () => process.exit(143));

checkAnswers();

// Hardhat's plug-in would make '1', 1 and 1n equal in files that run after one that loads Hardhat. It also
// searches packages that are not installed for each value that is compared, which is slow.
Object.assign(numbers, { supportBigNumber: () => undefined });

/** For Mocha's worker processes, which run several files each, with a root suite for each file. */
export const mochaHooks = {
  beforeAll(this: Context): void {
    const root = (this.test as Test).parent;
    give(root);
    if (root) stopWithSuites(root);
  },
  afterEach: [
    everythingIsAsDescribed,
    function (this: Context): void {
      give(this.currentTest?.parent);
    },
  ],
  afterAll: [() => stopAll(), everythingIsAsDescribed],
};
