import { mock } from 'node:test';
import { expect } from 'chai';
import { startSamples } from '../../service/console/overview';

describe("samples of the console's plots", () => {
  beforeEach(() => mock.timers.enable({ apis: ['setInterval'] }));
  afterEach(() => mock.timers.reset());

  it('count the deliveries of the last minute, every ten seconds', () => {
    let now = 0;
    const samples = startSamples(() => [], { now: () => now });
    const pass = (deliveries: number): void => {
      for (let count = 0; count < deliveries; count++) samples.delivered();
      now += 10_000;
      mock.timers.tick(10_000);
    };
    for (const deliveries of [3, 2, 0, 0, 0, 0, 0, 0]) pass(deliveries);
    expect(samples.plots().deliveriesPerMinute.map(([, count]) => count)).to.deep.equal([
      3, 5, 5, 5, 5, 5, 2, 0,
    ]);
    expect(samples.plots().lag).to.deep.equal([]);
    samples.stop();
  });
});
