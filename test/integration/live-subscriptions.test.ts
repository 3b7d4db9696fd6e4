import { expect } from 'chai';
import { ENGINES, newState, openState } from '../helpers/database/engines';
import { runLiveChange } from '../helpers/live-change/live-change';

for (const engine of ENGINES)
  describe(`subscriptions and registries that change while events are recorded, on ${engine}`, () => {
    it('give each subscriber the events of its rules, in order, and no other', async function () {
      const state = await newState(engine);
      if (state === undefined) return this.skip();
      const database = await openState(state);
      try {
        const size = { subscriptions: 10, tokens: 50, changes: 60, eventsPerBlock: 4, blockEveryMs: 150 };
        const { counts, ...violations } = await runLiveChange(database, { seed: 17, ...size });
        expect(violations).to.deep.equal({ missed: 0, outOfOrder: 0, againstTheRule: 0, repeated: 0 });
        for (const [what, times] of Object.entries(counts)) expect(times, what).to.be.above(0);
      } finally {
        await database.close();
        await state.remove();
      }
    });
  });
