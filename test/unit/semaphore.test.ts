import { expect } from 'chai';
import { BusyError } from '../../service/base/errors';
import { createSemaphore } from '../../service/base/semaphore';
import { VirtualTime } from '../helpers/virtual-time';

const here = new AbortController().signal;
const BUSY = 'Too many at once.';

/** The error of a promise that rejects. */
async function refusal(acquired: Promise<unknown>): Promise<unknown> {
  return acquired.then(
    () => expect.fail('it was given a permit'),
    (error: unknown) => error,
  );
}

describe('semaphore', () => {
  let time: VirtualTime;

  beforeEach(() => (time = new VirtualTime()));

  it('gives released permits in the order of requests', async () => {
    const semaphore = createSemaphore(time, { permits: 2, waiting: 10, waitMs: 60_000 }, BUSY);
    const [first, second] = [await semaphore.acquire(here), await semaphore.acquire(here)];
    const entered: string[] = [];
    const waiting = ['a', 'b', 'c'].map(async (name) => {
      const place = await semaphore.acquire(here);
      entered.push(name);
      return place;
    });
    await new Promise(setImmediate);
    expect(entered).to.deep.equal([]);
    first();
    // A second release of the same permit has no effect.
    first();
    await new Promise(setImmediate);
    expect(entered).to.deep.equal(['a']);
    second();
    (await waiting[0]!)();
    await new Promise(setImmediate);
    expect(entered).to.deep.equal(['a', 'b', 'c']);
    for (const place of waiting) (await place)();
    expect(await semaphore.acquire(here)).to.be.a('function');
    expect(await semaphore.acquire(here)).to.be.a('function');
  });

  it('refuses callers beyond the limit of waiting ones, and counts permits and waiting callers', async () => {
    const semaphore = createSemaphore(time, { permits: 1, waiting: 1, waitMs: 60_000 }, BUSY);
    const first = await semaphore.acquire(here);
    const second = semaphore.acquire(here);
    expect(await refusal(semaphore.acquire(here)))
      .to.be.instanceOf(BusyError)
      .with.property('message', BUSY);
    expect(semaphore.figures()).to.deep.equal({ held: 1, waiting: 1 });
    first();
    expect(semaphore.figures()).to.deep.equal({ held: 1, waiting: 0 });
    (await second)();
    expect(semaphore.figures()).to.deep.equal({ held: 0, waiting: 0 });
  });

  it('refuses a caller after the longest wait, and keeps the permit for the next one', async () => {
    const semaphore = createSemaphore(time, { permits: 1, waiting: 5, waitMs: 20 }, BUSY);
    const first = await semaphore.acquire(here);
    const second = refusal(semaphore.acquire(here));
    await time.pass(19);
    expect(semaphore.figures()).to.deep.equal({ held: 1, waiting: 1 });
    await time.pass(1);
    expect(semaphore.figures()).to.deep.equal({ held: 1, waiting: 0 });
    expect(await second)
      .to.be.instanceOf(BusyError)
      .with.property('message', BUSY);
    first();
    expect(await semaphore.acquire(here)).to.be.a('function');
  });

  it('passes over callers who have left', async () => {
    const semaphore = createSemaphore(time, { permits: 1, waiting: 5, waitMs: 60_000 }, BUSY);
    const first = await semaphore.acquire(here);
    const leaving = new AbortController();
    const [gone, next] = [semaphore.acquire(leaving.signal), semaphore.acquire(here)];
    const refused = refusal(gone);
    leaving.abort();
    expect(semaphore.figures()).to.deep.equal({ held: 1, waiting: 1 });
    expect(await refused).to.equal(leaving.signal.reason);
    expect(await refusal(semaphore.acquire(leaving.signal))).to.equal(leaving.signal.reason);
    first();
    expect(await next).to.be.a('function');
  });
});
