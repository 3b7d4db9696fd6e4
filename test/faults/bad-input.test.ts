import { expect } from 'chai';
import { ENGINES } from '../helpers/database/engines';
import { createRequestPlace, type RequestPlace } from '../helpers/request-model/request-model';

/** The same scenarios in each run, as many as there is time for; `npm run soak` runs others. */
const FOR_MS = 5_000;
const FIRST_SEED = 1;

for (const engine of ENGINES)
  describe(`the service on ${engine} under right requests, wrong requests and rubbish`, () => {
    let place: RequestPlace | undefined;

    before(async function () {
      place = await createRequestPlace(engine);
      if (place === undefined) this.skip();
    });

    after(() => place?.stop());

    it(`gives only answers that are described, and goes on (seeds from ${FIRST_SEED} on)`, async () => {
      const until = Date.now() + FOR_MS;
      for (let seed = FIRST_SEED; place !== undefined && Date.now() < until; seed++) {
        const { violations } = await place.run(seed);
        const again = `npm run soak -- --model requests --engine ${engine} --seed ${seed} repeats it`;
        expect(violations, again).to.deep.equal([]);
      }
    });
  });
