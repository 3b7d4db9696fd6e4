import { expect } from 'chai';
import { createRequestPace } from '../../service/chain/rpc-client';

/** Milliseconds until this many requests may be sent. */
async function timeFor(turns: number, pace: ReturnType<typeof createRequestPace>): Promise<number> {
  const since = performance.now();
  for (let turn = 0; turn < turns; turn++) await pace.turn();
  return performance.now() - since;
}

describe('the pace of requests to a provider', () => {
  it('is unlimited until the provider throttles', async () => {
    expect(await timeFor(1_000, createRequestPace())).to.be.lessThan(500);
  });

  it('is one request a second after a refusal, for concurrent requests too', async () => {
    const pace = createRequestPace();
    pace.refused(await pace.turn());
    const times: number[] = [];
    const since = performance.now();
    await Promise.all([1, 2].map(async () => times.push((await pace.turn(), performance.now() - since))));
    expect(times[0]).to.be.within(950, 1_500);
    expect((times[1] ?? 0) - (times[0] ?? 0)).to.be.within(950, 1_500);
  });

  it('rises with answers until it is unlimited', async () => {
    const pace = createRequestPace();
    pace.refused(await pace.turn());
    await pace.turn();
    for (let answer = 0; answer < 14; answer++) pace.answered();
    // The turn before these answers still decides the time of the next one.
    await pace.turn();
    expect(await timeFor(100, pace)).to.be.lessThan(500);
  });

  it('slows down once for requests that were sent at the same pace', async () => {
    const pace = createRequestPace();
    const [first, second] = [await pace.turn(), await pace.turn()];
    pace.refused(first);
    await pace.turn();
    for (let answer = 0; answer < 14; answer++) pace.answered();
    pace.refused(second);
    await pace.turn();
    expect(await timeFor(10, pace)).to.be.lessThan(500);
  });

  it('is unlimited again if the refusal had another cause', async () => {
    const pace = createRequestPace();
    pace.refused(await pace.turn());
    pace.forget();
    expect(await timeFor(10, pace)).to.be.lessThan(500);
  });
});
