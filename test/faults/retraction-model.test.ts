import { expect } from 'chai';
import { createRetractionPlace, type RetractionPlace } from '../helpers/retraction-model/retraction-model';

/** The same scenarios in each run, as many as there is time for; `npm run soak` runs others. */
const FOR_MS = 5_000;
const FIRST_SEED = 1;

describe('a subscription with retractions, under reorganisations, kills and wrong answers', () => {
  let place: RetractionPlace;

  before(async () => {
    place = await createRetractionPlace();
  });

  after(() => place?.stop());

  it(`leads to the state of the contracts (seeds from ${FIRST_SEED} on)`, async () => {
    const until = Date.now() + FOR_MS;
    for (let seed = FIRST_SEED; Date.now() < until; seed++) {
      const { violations, history } = await place.run(seed);
      if (violations.length > 0) console.error(history.join('\n'));
      const again = `npm run soak -- --model retractions --seed ${seed} makes the same choices again`;
      expect(violations, again).to.deep.equal([]);
    }
  });
});
