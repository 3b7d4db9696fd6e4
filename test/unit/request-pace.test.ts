import { expect } from 'chai';
import { createRequestPace } from '../../service/chain/request-pace';

/** How long it takes until so many may be sent, in milliseconds. */
async function timeFor(turns: number, pace: ReturnType<typeof createRequestPace>): Promise<number> {
  const since = performance.now();
  for (let turn = 0; turn < turns; turn++) await pace.turn();
  return performance.now() - since;
}

describe('the pace of requests to a provider', () => {
  it('is none until the provider minds', async () => {
    expect(await timeFor(1_000, createRequestPace())).to.be.lessThan(500);
  });

  it('is one a second after a refusal, also for those that ask at the same time', async () => {
    const pace = createRequestPace();
    pace.refused(await pace.turn());
    const times: number[] = [];
    const since = performance.now();
    await Promise.all([1, 2].map(async () => times.push((await pace.turn(), performance.now() - since))));
    expect(times[0]).to.be.within(950, 1_500);
    expect((times[1] ?? 0) - (times[0] ?? 0)).to.be.within(950, 1_500);
  });

  it('becomes faster with each answer, until there is none', async () => {
    const pace = createRequestPace();
    pace.refused(await pace.turn());
    await pace.turn();
    for (let answer = 0; answer < 14; answer++) pace.answered();
    // The turn that was taken last decides when the next one is.
    await pace.turn();
    expect(await timeFor(100, pace)).to.be.lessThan(500);
  });

  it('is made slow once by requests that are refused together', async () => {
    const pace = createRequestPace();
    const [first, second] = [await pace.turn(), await pace.turn()];
    pace.refused(first);
    await pace.turn();
    for (let answer = 0; answer < 14; answer++) pace.answered();
    pace.refused(second);
    await pace.turn();
    expect(await timeFor(10, pace)).to.be.lessThan(500);
  });

  it('is none again when it was not the pace that the provider minded', async () => {
    const pace = createRequestPace();
    pace.refused(await pace.turn());
    pace.forget();
    expect(await timeFor(10, pace)).to.be.lessThan(500);
  });
});
