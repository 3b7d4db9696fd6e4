import { expect } from 'chai';
import { emptyOutbox } from '../helpers/database/empty-outbox';
import { ENGINES } from '../helpers/database/engines';
import { runLiveChange } from '../helpers/live-change/live-change';

for (const engine of ENGINES)
  describe(`subscriptions that change while events are recorded, on ${engine}`, () => {
    const outbox = emptyOutbox(engine);

    it('get each event of their rules, in order, and no other', async () => {
      const size = { subscriptions: 10, tokens: 50, changes: 60, eventsPerBlock: 10, blockEveryMs: 20 };
      const { counts, ...violations } = await runLiveChange(outbox.database, { seed: 16, ...size });
      expect(violations).to.deep.equal({ missed: 0, outOfOrder: 0, againstTheRule: 0, repeated: 0 });
      for (const [what, times] of Object.entries(counts)) expect(times, what).to.be.above(0);
    });
  });
