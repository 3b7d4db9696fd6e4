import { expect } from 'chai';
import { Pacing } from '../../service/chain/throttling';
import type { Request } from '../../service/chain/transport';
import { VirtualTime } from '../helpers/virtual-time';

const CALL: Request = { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] };
const RANGE: Request = { ...CALL, method: 'eth_getLogs', params: [{ fromBlock: '0x1', toBlock: '0x2' }] };

/** The provider throttles a request that was sent in this turn. */
async function refuse(pace: Pacing, turn: number, request = CALL, times = 1): Promise<boolean> {
  return pace.again({ request, cause: new Error('too many requests'), times, turn });
}

/** Plays with a pace. `timeFor`: milliseconds until this many requests may be sent. */
function withPace(play: (pace: Pacing, timeFor: (turns: number) => Promise<number>) => Promise<void>) {
  const time = new VirtualTime();
  const pace = new Pacing(time);
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
      expect(await refuse(pace, await pace.turn(), RANGE)).to.equal(true);
      expect(await refuse(pace, await pace.turn(), RANGE, 2)).to.equal(false);
      expect(await timeFor(10)).to.equal(0);
    }));

  it('is one request a second after a refusal, for concurrent requests too', () =>
    withPace(async (pace, timeFor) => {
      await refuse(pace, await pace.turn());
      expect(await Promise.all([timeFor(1), timeFor(1)])).to.deep.equal([1_000, 2_000]);
    }));

  it('rises with answers until it is unlimited', () =>
    withPace(async (pace, timeFor) => {
      await refuse(pace, await pace.turn());
      await pace.turn();
      for (let answer = 0; answer < 14; answer++) pace.answered();
      // The turn before these answers still decides the time of the next one.
      await pace.turn();
      expect(await timeFor(100)).to.equal(0);
    }));

  it('slows down once for requests that were sent at the same pace', () =>
    withPace(async (pace, timeFor) => {
      const [first, second] = [await pace.turn(), await pace.turn()];
      await refuse(pace, first);
      await pace.turn();
      for (let answer = 0; answer < 14; answer++) pace.answered();
      await refuse(pace, second);
      await pace.turn();
      expect(await timeFor(10)).to.equal(0);
    }));
});
