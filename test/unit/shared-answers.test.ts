import { expect } from 'chai';
import { answerInTime } from '../../service/base/shared-answers';

const never = (): Promise<never> => new Promise(() => undefined);

describe('a request with a time limit', () => {
  it('is sent anew for each later caller', async () => {
    let count = 0;
    const ask = answerInTime(async () => ++count);
    expect([await ask(1_000), await ask(1_000)]).to.deep.equal([1, 2]);
  });

  it('is sent once for concurrent callers, who share the answer', async () => {
    let count = 0;
    const ask = answerInTime(async () => ++count);
    expect(await Promise.all([ask(1_000), ask(1_000), ask(1_000)])).to.deep.equal([1, 1, 1]);
  });

  it('is given up at the time limit, and not sent again while it hangs', async () => {
    let count = 0;
    const ask = answerInTime(() => {
      count++;
      return never();
    });
    expect([await ask(5), await ask(5)]).to.deep.equal([undefined, undefined]);
    expect(count).to.equal(1);
  });

  it('has no answer when it fails, and is sent again for the next caller', async () => {
    let count = 0;
    const ask = answerInTime(async () => {
      if (++count === 1) throw new Error('the database is away');
      return count;
    });
    expect([await ask(1_000), await ask(1_000)]).to.deep.equal([undefined, 2]);
  });
});
