import { expect } from 'chai';
import { runScenario } from '../helpers/mint-model/mint-model';
import { createMintPlace, type MintPlace } from '../helpers/mint-model/place';

/** The same scenarios in each run, as many as there is time for; `npm run soak` runs others. */
const FOR_MS = 5_000;
const FIRST_SEED = 1;

describe('the mint queue with unreliable nodes and random kills', () => {
  let place: MintPlace;

  before(async () => {
    place = await createMintPlace();
  });

  after(() => place?.stop());

  it(`mints one token for every key and fails none wrongly (seeds from ${FIRST_SEED} on)`, async () => {
    const until = Date.now() + FOR_MS;
    for (let seed = FIRST_SEED; Date.now() < until; seed++) {
      const { violations, history } = await runScenario(place, seed);
      if (violations.length > 0) console.error(history.join('\n'));
      expect(violations, `npm run soak -- --seed ${seed} runs it again`).to.deep.equal([]);
    }
  });
});
