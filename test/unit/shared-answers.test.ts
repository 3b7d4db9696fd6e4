import { expect } from 'chai';
import { shared, type Sharing } from '../../service/base/shared-answers';
import { VirtualTime } from '../helpers/virtual-time';

const never = (): Promise<never> => new Promise(() => undefined);
const LONG_MS = 1_000;

describe('a shared question', () => {
  let count: number;
  let time: VirtualTime;
  let answer: () => Promise<number>;

  beforeEach(() => {
    count = 0;
    time = new VirtualTime();
    answer = async () => count;
  });

  /** A function that asks, and waits for the answer in virtual time. */
  function sharedWith(options: Partial<Sharing> = {}): (withinMs: number) => Promise<number | undefined> {
    const ask = (): Promise<number> => {
      count++;
      return answer();
    };
    const asked = shared(ask, { time, ...options });
    return (withinMs) => time.settled(asked(withinMs));
  }

  it('is asked anew for each later caller', async () => {
    const ask = sharedWith();
    expect([await ask(LONG_MS), await ask(LONG_MS)]).to.deep.equal([1, 2]);
  });

  it('is asked once for concurrent callers, who share the answer', async () => {
    const ask = shared(async () => ++count, { time });
    expect(await Promise.all([ask(LONG_MS), ask(LONG_MS), ask(LONG_MS)])).to.deep.equal([1, 1, 1]);
  });

  it('is given up at the time limit, and not asked again while it hangs', async () => {
    answer = never;
    const ask = sharedWith();
    expect([await ask(5), await ask(5)]).to.deep.equal([undefined, undefined]);
    expect(count).to.equal(1);
  });

  it('has no answer when it fails, and is asked again for the next caller', async () => {
    const ask = sharedWith();
    expect(await ask(LONG_MS)).to.equal(1);
    answer = async () => Promise.reject(new Error('the database is away'));
    expect(await ask(LONG_MS)).to.equal(undefined);
    answer = async () => count;
    expect(await ask(LONG_MS)).to.equal(3);
  });

  it('is not asked again before its time, not even if it failed', async () => {
    const ask = sharedWith({ leastMs: 500 });
    expect(await ask(LONG_MS)).to.equal(1);
    await time.pass(499);
    expect(await ask(LONG_MS)).to.equal(1);
    await time.pass(1);
    answer = async () => Promise.reject(new Error('the database is away'));
    expect([await ask(LONG_MS), await ask(LONG_MS)]).to.deep.equal([undefined, undefined]);
    expect(count).to.equal(2);
  });

  it('is asked again ten seconds after a failure, however long an answer is kept', async () => {
    const ask = sharedWith({ leastMs: 60_000 });
    answer = async () => Promise.reject(new Error('the node is away'));
    await ask(LONG_MS);
    answer = async () => count;
    await time.pass(9_999);
    expect(await ask(LONG_MS)).to.equal(undefined);
    await time.pass(1);
    expect(await ask(LONG_MS)).to.equal(2);
  });

  it('has its last answer while a newer one is late or fails, until that is too old', async () => {
    const ask = sharedWith({ keptMs: 1_000 });
    expect(await ask(LONG_MS)).to.equal(1);
    answer = async () => Promise.reject(new Error('the database is away'));
    await time.pass(990);
    expect(await ask(LONG_MS)).to.equal(1);
    answer = never;
    expect(await ask(5)).to.equal(1);
    expect(await ask(5)).to.equal(undefined);
  });

  it('is asked again at once after the system clock stepped back', async () => {
    let now = 3_600_000;
    const clock = { elapsed: () => time.elapsed(), later: time.later.bind(time), now: () => now };
    const ask = sharedWith({ leastMs: 500, time: clock });
    expect(await ask(LONG_MS)).to.equal(1);
    now = 0;
    expect([await ask(LONG_MS), await ask(LONG_MS)]).to.deep.equal([2, 2]);
    now = 500;
    expect(await ask(LONG_MS)).to.equal(3);
  });

  it('is asked again after it threw instead of rejecting', async () => {
    answer = () => {
      throw new Error('the settings are missing');
    };
    const ask = sharedWith();
    expect([await ask(LONG_MS), await ask(LONG_MS)]).to.deep.equal([undefined, undefined]);
    answer = async () => count;
    expect(await ask(LONG_MS)).to.equal(3);
  });

  it('takes at most a twentieth of the time if it is paced', async () => {
    answer = async () => {
      await time.sleep(20);
      return count;
    };
    const ask = sharedWith({ isPaced: true });
    expect(await ask(LONG_MS)).to.equal(1);
    // It was asked 20 ms ago.
    await time.pass(20 * 20 - 21);
    expect(await ask(LONG_MS)).to.equal(1);
    await time.pass(1);
    expect(await ask(LONG_MS)).to.equal(2);
  });
});
