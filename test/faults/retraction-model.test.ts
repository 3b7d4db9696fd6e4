import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { createRetractionPlace, type RetractionPlace } from '../helpers/retraction-model/retraction-model';

/** Limits a run of all tests; `npm run soak -- --model retractions` makes as many runs as it is asked for. */
const FOR_MS = 12_000;
const HIGHEST_SEED = 1_000_000;

describe('a subscription with retractions, under reorganisations, kills and wrong answers', () => {
  let place: RetractionPlace;

  before(async () => {
    place = await createRetractionPlace();
  });

  after(() => place?.stop());

  const first = randomInt(HIGHEST_SEED);
  it(`leads to the state of the contracts (seeds from ${first} on)`, async () => {
    const until = Date.now() + FOR_MS;
    for (let seed = first; Date.now() < until; seed++) {
      const { violations, history } = await place.run(seed);
      if (violations.length > 0) console.error(history.join('\n'));
      const again = `npm run soak -- --model retractions --seed ${seed} makes the same choices again`;
      expect(violations, again).to.deep.equal([]);
    }
  });
});
