import { expect } from 'chai';
import { inBatches, untilNothingIsLeft } from '../../service/database/batches';

describe('Batches', () => {
  it('join the results of all calls, in the order of the items', async () => {
    const sizes: number[] = [];
    const doubled = await inBatches(
      [1, 2, 3, 4, 5],
      async (some) => {
        sizes.push(some.length);
        return some.map((one) => 2 * one);
      },
      2,
    );
    expect(doubled).to.deep.equal([2, 4, 6, 8, 10]);
    expect(sizes).to.deep.equal([2, 2, 1]);
    expect(await inBatches([], async () => expect.fail('there is nothing to do'))).to.deep.equal([]);
  });

  it('are repeated until nothing is left, and counted', async () => {
    const left = [3, 2, 1, 0];
    expect(await untilNothingIsLeft(async () => left.shift() ?? expect.fail('it was done'))).to.equal(6);
    expect(left).to.deep.equal([]);
  });

  it('end after the step in which the signal aborts', async () => {
    const stopping = new AbortController();
    const step = async (): Promise<number> => {
      stopping.abort();
      return 3;
    };
    expect(await untilNothingIsLeft(step, stopping.signal)).to.equal(3);
    expect(await untilNothingIsLeft(step, stopping.signal)).to.equal(0);
  });
});
