import { expect } from 'chai';
import { createSemaphore } from '../../service/base/semaphore';

const here = new AbortController().signal;
type Place = () => void;

describe('semaphore', () => {
  it('gives released permits in the order of requests', async () => {
    const semaphore = createSemaphore({ permits: 2, waiting: 10, waitMs: 60_000 });
    const [first, second] = [await semaphore.acquire(here), await semaphore.acquire(here)] as [Place, Place];
    const entered: string[] = [];
    const waiting = ['a', 'b', 'c'].map(async (name) => {
      const place = await semaphore.acquire(here);
      entered.push(name);
      return place as Place;
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
    const semaphore = createSemaphore({ permits: 1, waiting: 1, waitMs: 60_000 });
    const first = (await semaphore.acquire(here)) as Place;
    const second = semaphore.acquire(here);
    expect(await semaphore.acquire(here)).to.equal('busy');
    expect(semaphore.figures()).to.deep.equal({ held: 1, waiting: 1 });
    first();
    expect(semaphore.figures()).to.deep.equal({ held: 1, waiting: 0 });
    ((await second) as Place)();
    expect(semaphore.figures()).to.deep.equal({ held: 0, waiting: 0 });
  });

  it('refuses a caller after the longest wait, and keeps the permit for the next one', async () => {
    const semaphore = createSemaphore({ permits: 1, waiting: 5, waitMs: 20 });
    const first = (await semaphore.acquire(here)) as Place;
    expect(await semaphore.acquire(here)).to.equal('busy');
    first();
    expect(await semaphore.acquire(here)).to.be.a('function');
  });

  it('passes over callers who have left', async () => {
    const semaphore = createSemaphore({ permits: 1, waiting: 5, waitMs: 60_000 });
    const first = (await semaphore.acquire(here)) as Place;
    const leaving = new AbortController();
    const [gone, next] = [semaphore.acquire(leaving.signal), semaphore.acquire(here)];
    leaving.abort();
    expect(semaphore.figures()).to.deep.equal({ held: 1, waiting: 1 });
    expect(await gone).to.equal('left');
    expect(await semaphore.acquire(leaving.signal)).to.equal('left');
    first();
    expect(await next).to.be.a('function');
  });
});
