import { expect } from 'chai';
import { concurrently } from '../../service/chain/concurrently';

describe('doing something for each item, a few at the same time', () => {
  it('gives the results in the order of the items, whichever ends first', async () => {
    const pauses = [8, 1, 4, 0];
    const results = await concurrently(pauses, 3, async (pause) => {
      await new Promise((resolve) => setTimeout(resolve, pause));
      return pause * 10;
    });
    expect(results).to.deep.equal([80, 10, 40, 0]);
    expect(await concurrently([], 3, async (item) => item)).to.deep.equal([]);
  });

  it('never does more at the same time than it may, and no fewer while there are items', async () => {
    let [underWay, most] = [0, 0];
    const seen: number[] = [];
    const items = Array.from({ length: 20 }, (_, index) => index);
    await concurrently(items, 4, async (item) => {
      most = Math.max(most, ++underWay);
      seen.push(item);
      await new Promise((resolve) => setImmediate(resolve));
      underWay--;
    });
    expect(most).to.equal(4);
    expect(seen).to.deep.equal(items);
  });

  it('begins nothing more after a failure', async () => {
    const begun: number[] = [];
    await concurrently([1, 2, 3, 4, 5, 6], 2, async (item) => {
      begun.push(item);
      await new Promise((resolve) => setImmediate(resolve));
      if (item === 1) throw new Error('the first');
    }).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(begun.length).to.be.at.most(3);
  });

  it('fails with the first failure', async () => {
    const failure = await concurrently([1, 2, 3], 2, async (item) => {
      if (item === 2) throw new Error(`item ${item}`);
      return item;
    }).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error).and.include({ message: 'item 2' });
  });
});
