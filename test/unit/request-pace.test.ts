import { expect } from 'chai';
import { createRequestPace } from '../../service/chain/throttling';
import { VirtualTime } from '../helpers/virtual-time';

type Pace = ReturnType<typeof createRequestPace>;

/** Plays with a pace. `timeFor`: milliseconds until this many requests may be sent. */
function withPace(play: (pace: Pace, timeFor: (turns: number) => Promise<number>) => Promise<void>) {
  const time = new VirtualTime();
  const pace = createRequestPace(time);
  const played = play(pace, async (turns) => {
    const since = time.now();
    for (let turn = 0; turn < turns; turn++) await pace.turn();
    return time.now() - since;
  });
  return time.settled(played);
}

describe('the pace of requests to a provider', () => {
  it('is unlimited until the provider throttles, and again if the refusal had another cause', () =>
    withPace(async (pace, timeFor) => {
      expect(await timeFor(1_000)).to.equal(0);
      pace.refused(await pace.turn());
      pace.forget();
      expect(await timeFor(10)).to.equal(0);
    }));

  it('is one request a second after a refusal, for concurrent requests too', () =>
    withPace(async (pace, timeFor) => {
      pace.refused(await pace.turn());
      expect(await Promise.all([timeFor(1), timeFor(1)])).to.deep.equal([1_000, 2_000]);
    }));

  it('rises with answers until it is unlimited', () =>
    withPace(async (pace, timeFor) => {
      pace.refused(await pace.turn());
      await pace.turn();
      for (let answer = 0; answer < 14; answer++) pace.answered();
      // The turn before these answers still decides the time of the next one.
      await pace.turn();
      expect(await timeFor(100)).to.equal(0);
    }));

  it('slows down once for requests that were sent at the same pace', () =>
    withPace(async (pace, timeFor) => {
      const [first, second] = [await pace.turn(), await pace.turn()];
      pace.refused(first);
      await pace.turn();
      for (let answer = 0; answer < 14; answer++) pace.answered();
      pace.refused(second);
      await pace.turn();
      expect(await timeFor(10)).to.equal(0);
    }));
});
