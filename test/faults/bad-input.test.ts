import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { ENGINES } from '../helpers/database/engines';
import { createRequestPlace, type RequestPlace } from '../helpers/request-model/request-model';

/** Limits a run of all tests; `npm run soak -- --model requests` makes as many runs as it is asked for. */
const FOR_MS = 10_000;
const HIGHEST_SEED = 1_000_000;

for (const engine of ENGINES)
  describe(`the service on ${engine} under right requests, wrong requests and rubbish`, () => {
    let place: RequestPlace | undefined;

    before(async function () {
      place = await createRequestPlace(engine);
      if (place === undefined) this.skip();
    });

    after(() => place?.stop());

    const first = randomInt(HIGHEST_SEED);
    it(`gives only answers that are described, and goes on (seeds from ${first} on)`, async () => {
      const until = Date.now() + FOR_MS;
      for (let seed = first; place !== undefined && Date.now() < until; seed++) {
        const { violations } = await place.run(seed);
        const again = `npm run soak -- --model requests --engine ${engine} --seed ${seed} repeats it`;
        expect(violations, again).to.deep.equal([]);
      }
    });
  });
