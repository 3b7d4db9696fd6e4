import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { createRequestPlace, type RequestPlace } from '../helpers/request-model/request-model';

/** Limits a run of all tests; `npm run soak -- --model requests` makes as many runs as it is asked for. */
const FOR_MS = 20_000;
const HIGHEST_SEED = 1_000_000;

describe('the service under right requests, wrong requests and rubbish', () => {
  let place: RequestPlace;

  before(async () => {
    place = await createRequestPlace();
  });

  after(() => place?.stop());

  const first = randomInt(HIGHEST_SEED);
  it(`gives only answers that are described, and goes on (seeds from ${first} on)`, async () => {
    const until = Date.now() + FOR_MS;
    for (let seed = first; Date.now() < until; seed++) {
      const { violations } = await place.run(seed);
      const again = `npm run soak -- --model requests --seed ${seed} makes the same requests again`;
      expect(violations, again).to.deep.equal([]);
    }
  });
});
