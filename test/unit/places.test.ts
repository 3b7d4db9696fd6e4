import { expect } from 'chai';
import { createPlaces } from '../../service/places';

const here = new AbortController().signal;
type Place = () => void;

describe('places', () => {
  it('are given in the order of asking, as they get free', async () => {
    const places = createPlaces({ places: 2, waiting: 10, waitMs: 60_000 });
    const [first, second] = [await places.enter(here), await places.enter(here)] as [Place, Place];
    const entered: string[] = [];
    const waiting = ['a', 'b', 'c'].map(async (name) => {
      const place = await places.enter(here);
      entered.push(name);
      return place as Place;
    });
    await new Promise(setImmediate);
    expect(entered).to.deep.equal([]);
    first();
    // Given back once: not two places.
    first();
    await new Promise(setImmediate);
    expect(entered).to.deep.equal(['a']);
    second();
    (await waiting[0]!)();
    await new Promise(setImmediate);
    expect(entered).to.deep.equal(['a', 'b', 'c']);
    for (const place of waiting) (await place)();
    expect(await places.enter(here)).to.be.a('function');
    expect(await places.enter(here)).to.be.a('function');
  });

  it('are not waited for by more than may wait', async () => {
    const places = createPlaces({ places: 1, waiting: 1, waitMs: 60_000 });
    const first = (await places.enter(here)) as Place;
    const second = places.enter(here);
    expect(await places.enter(here)).to.equal('busy');
    expect(places.figures()).to.deep.equal({ inside: 1, waiting: 1 });
    first();
    expect(places.figures()).to.deep.equal({ inside: 1, waiting: 0 });
    ((await second) as Place)();
    expect(places.figures()).to.deep.equal({ inside: 0, waiting: 0 });
  });

  it('are not waited for too long, and who gave up gets none', async () => {
    const places = createPlaces({ places: 1, waiting: 5, waitMs: 20 });
    const first = (await places.enter(here)) as Place;
    expect(await places.enter(here)).to.equal('busy');
    first();
    expect(await places.enter(here)).to.be.a('function');
  });

  it('go past those who have left', async () => {
    const places = createPlaces({ places: 1, waiting: 5, waitMs: 60_000 });
    const first = (await places.enter(here)) as Place;
    const leaving = new AbortController();
    const [gone, next] = [places.enter(leaving.signal), places.enter(here)];
    leaving.abort();
    expect(places.figures()).to.deep.equal({ inside: 1, waiting: 1 });
    expect(await gone).to.equal('left');
    expect(await places.enter(leaving.signal)).to.equal('left');
    first();
    expect(await next).to.be.a('function');
  });
});
