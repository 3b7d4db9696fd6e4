import { expect } from 'chai';
import { describeOnEngines } from '../helpers/database/engines';
import { runLiveChange } from '../helpers/live-change/live-change';

describeOnEngines('subscriptions and registries that change while events are recorded,', (on) => {
  it('give each subscriber the events of its rules, in order, and no other', async () => {
    const size = { subscriptions: 8, tokens: 50, changes: 40, eventsPerBlock: 2, blockEveryMs: 150 };
    const { counts, ...violations } = await runLiveChange(on.database, { seed: 17, ...size });
    expect(violations).to.deep.equal({ missed: 0, outOfOrder: 0, againstTheRule: 0, repeated: 0 });
    for (const [what, times] of Object.entries(counts)) expect(times, what).to.be.above(0);
  });
});
