import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { runScenario } from '../helpers/mint-model/mint-model';
import { createMintPlace, type MintPlace } from '../helpers/mint-model/place';

/** Limits a run of all tests; `npm run soak` runs as many scenarios as it is asked for. */
const FOR_MS = 12_000;
const HIGHEST_SEED = 1_000_000;

describe('the mint queue with unreliable nodes and random kills', () => {
  let place: MintPlace;

  before(async () => {
    place = await createMintPlace();
  });

  after(() => place?.stop());

  const first = randomInt(HIGHEST_SEED);
  it(`mints one token for every key and fails none wrongly (seeds from ${first} on)`, async () => {
    const until = Date.now() + FOR_MS;
    for (let seed = first; Date.now() < until; seed++) {
      const { violations, history } = await runScenario(place, seed);
      if (violations.length > 0) console.error(history.join('\n'));
      expect(violations, `npm run soak -- --seed ${seed} runs it again`).to.deep.equal([]);
    }
  });
});
