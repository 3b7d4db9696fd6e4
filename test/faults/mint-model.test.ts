import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { runScenario } from '../helpers/mint-model/mint-model';
import { createMintPlace, type MintPlace } from '../helpers/mint-model/place';

/** What a run of all tests has time for; `npm run soak` takes as many as it is asked for. */
const FOR_MS = 12_000;
const HIGHEST_SEED = 1_000_000;

describe('the queue of mints, whatever nodes say and forget, and whenever it is killed', () => {
  let place: MintPlace;

  before(async () => {
    place = await createMintPlace();
  });

  after(() => place?.stop());

  const first = randomInt(HIGHEST_SEED);
  it(`ends with one token for every key, and without a false failure (seeds from ${first} on)`, async () => {
    const until = Date.now() + FOR_MS;
    for (let seed = first; Date.now() < until; seed++) {
      const { violations, history } = await runScenario(place, seed);
      if (violations.length > 0) console.error(history.join('\n'));
      expect(violations, `npm run soak -- --seed ${seed} runs it again`).to.deep.equal([]);
    }
  });
});
