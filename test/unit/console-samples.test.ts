import { expect } from 'chai';
import { startSamples } from '../../service/console/overview';
import { VirtualTime } from '../helpers/virtual-time';

describe("samples of the console's plots", () => {
  it('count the deliveries of the last minute, every ten seconds', async () => {
    const time = new VirtualTime();
    const samples = startSamples(time, () => []);
    for (const deliveries of [3, 2, 0, 0, 0, 0, 0, 0]) {
      for (let count = 0; count < deliveries; count++) samples.delivered();
      await time.pass(10_000);
    }
    expect(samples.plots().deliveriesPerMinute.map(([, count]) => count)).to.deep.equal([
      3, 5, 5, 5, 5, 5, 2, 0,
    ]);
    expect(samples.plots().lag).to.deep.equal([]);
    await samples.stop();
  });
});
