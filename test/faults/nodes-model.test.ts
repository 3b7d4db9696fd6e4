import { expect } from 'chai';
import { createMintPlace, type MintPlace } from '../helpers/mint-model/place';
import { runNodesScenario } from '../helpers/nodes-model/nodes-model';

/** The same scenarios in each run, as many as there is time for; `npm run soak` runs others. */
const FOR_MS = 5_000;
const FIRST_SEED = 1;

describe('three nodes, of which one lies and any one is away at times', () => {
  let place: MintPlace;

  before(async () => {
    place = await createMintPlace();
  });

  after(() => place?.stop());

  it(`give every event once and every token once (seeds from ${FIRST_SEED} on)`, async () => {
    const until = Date.now() + FOR_MS;
    for (let seed = FIRST_SEED; Date.now() < until; seed++) {
      const { violations, history } = await runNodesScenario(place, seed);
      if (violations.length > 0) console.error(history.join('\n'));
      expect(violations, `npm run soak -- --model nodes --seed ${seed} runs it again`).to.deep.equal([]);
    }
  });
});
