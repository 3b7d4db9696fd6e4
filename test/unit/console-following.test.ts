import { mock } from 'node:test';
import { expect } from 'chai';
import { RequestFailure } from '../../console/requests/request';
import { newDeferred } from '../../service/base/deferred';
import type { Overview } from '../../service/console/views';

interface Following {
  stop: () => void;
  retry: () => void;
}

interface FollowModule {
  followOverview: (
    read: () => Promise<Overview>,
    listener: { overview: (overview: Overview) => void; connected: () => void; lost: () => void },
  ) => Following;
}

/** Only the compiler of console/ knows the types of a browser, which this module needs. */
const MODULE: string = '../../console/requests/follow-overview';

const LOST = new RequestFailure(0, 'CONNECTION_LOST', 'The service did not answer.');
const ENDED = new RequestFailure(401, 'CONSOLE_SESSION_ENDED', 'There is no session.');
const LONG_MS = 600_000;

const overviewOf = (revision: string): Overview => ({ revision }) as Overview;

/** A stream of the browser. */
class FakeEventSource extends EventTarget {
  static opened: FakeEventSource[] = [];
  isOpen = true;

  constructor(readonly url: string) {
    super();
    FakeEventSource.opened.push(this);
  }

  close(): void {
    this.isOpen = false;
  }

  /** Sends an event as the service does. */
  send(type: 'overview' | 'alive' | 'end' | 'error', data = '{}'): void {
    this.dispatchEvent(Object.assign(new Event(type), { data }));
  }
}

/** Lets promises settle. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the overview that a page follows', () => {
  const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  const browser = { document: page, EventSource: FakeEventSource };
  let followOverview: FollowModule['followOverview'];
  let following: Following | undefined;
  /** The failures of the next reads; the others succeed. */
  let failures: (Error | undefined)[];
  let reads: number;
  let told: string[];

  before(async () => {
    ({ followOverview } = (await import(MODULE)) as FollowModule);
    Object.assign(globalThis, browser);
  });
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    // The middle: a first pause of half a second.
    mock.method(Math, 'random', () => 0.5);
    page.visibilityState = 'visible';
    [failures, reads, told, FakeEventSource.opened] = [[], 0, [], []];
  });
  afterEach(() => {
    following?.stop();
    following = undefined;
    mock.restoreAll();
    mock.timers.reset();
  });
  after(() => {
    for (const name of Object.keys(browser)) Reflect.deleteProperty(globalThis, name);
  });

  async function read(): Promise<Overview> {
    const failure = failures.shift();
    reads++;
    if (failure) throw failure;
    return overviewOf(`read ${reads}`);
  }

  const follow = async (reading = read): Promise<void> => {
    following = followOverview(reading, {
      overview: ({ revision }) => told.push(revision),
      connected: () => told.push('connected'),
      lost: () => told.push('lost'),
    });
    await settled();
  };
  const pass = async (ms: number): Promise<void> => {
    mock.timers.tick(ms);
    await settled();
  };
  const show = async (visibilityState: 'visible' | 'hidden'): Promise<void> => {
    Object.assign(page, { visibilityState }).dispatchEvent(new Event('visibilitychange'));
    await settled();
  };
  const open = (): FakeEventSource[] => FakeEventSource.opened.filter(({ isOpen }) => isOpen);
  /** The only open stream. */
  const stream = (): FakeEventSource => {
    const [one, ...others] = open();
    if (one === undefined || others.length > 0) throw new Error(`${open().length} streams are open`);
    return one;
  };

  it('is read once, and then comes as a stream', async () => {
    await follow();
    expect(stream().url).to.equal('/console/api/stream');
    stream().send('overview', JSON.stringify(overviewOf('sent')));
    expect(told).to.deep.equal(['read 1', 'sent', 'connected']);
    expect(reads).to.equal(1);
  });

  it('comes by another stream after 40 s of silence', async () => {
    await follow();
    const silent = stream();
    await pass(39_999);
    expect(silent.isOpen).to.equal(true);
    await pass(1);
    expect(open()).to.deep.equal([]);
    await pass(500);
    expect(stream()).not.to.equal(silent);
    expect(told).to.deep.equal(['read 1', 'read 2']);
  });

  for (const [type, data] of [
    ['alive', '{}'],
    ['overview', JSON.stringify(overviewOf('sent'))],
  ] as const)
    it(`stays with its stream for 40 s after an event \`${type}\``, async () => {
      await follow();
      const only = stream();
      for (let count = 0; count < 10; count++) {
        await pass(39_999);
        only.send(type, data);
      }
      await pass(39_999);
      expect(only.isOpen).to.equal(true);
      await pass(1);
      expect(only.isOpen).to.equal(false);
    });

  it('ends with the session', async () => {
    await follow();
    failures = [ENDED];
    stream().send('end');
    await pass(LONG_MS);
    expect([reads, open(), told]).to.deep.equal([2, [], ['read 1']]);
  });

  it('is lost when a third stream brings nothing, until one brings an overview', async () => {
    await follow();
    for (const pauseMs of [500, 1_000, 2_000]) {
      expect(told).not.to.include('lost');
      stream().send('error');
      await pass(pauseMs - 1);
      expect(open()).to.deep.equal([]);
      await pass(1);
    }
    expect(told).to.deep.equal(['read 1', 'read 2', 'read 3', 'lost', 'read 4']);
    stream().send('overview', JSON.stringify(overviewOf('sent')));
    expect(told.slice(5)).to.deep.equal(['sent', 'connected']);
    // The next stream is not waited for as long.
    stream().send('error');
    await pass(500);
    expect(reads).to.equal(5);
    expect(told.filter((one) => one === 'lost')).to.have.length(1);
  });

  it('is lost as soon as it cannot be read, and is read again after pauses of 30 s at most', async () => {
    const pauses = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
    failures = pauses.map(() => LOST);
    await follow();
    for (const [index, pauseMs] of pauses.entries()) {
      expect(new Set(told)).to.deep.equal(new Set(['lost']));
      await pass(pauseMs - 1);
      expect(reads).to.equal(index + 1);
      await pass(1);
    }
    expect(stream().isOpen).to.equal(true);
  });

  it('is read at once when somebody asks for it', async () => {
    failures = [LOST, LOST, LOST, LOST];
    await follow();
    await pass(500);
    await pass(1_000);
    following?.retry();
    await settled();
    expect(reads).to.equal(4);
    following?.retry();
    await settled();
    expect(stream().isOpen).to.equal(true);
    // No attempt is left from before.
    await pass(39_999);
    expect([reads, FakeEventSource.opened.length]).to.deep.equal([5, 1]);
  });

  it('is neither read nor streamed while the page is hidden', async () => {
    page.visibilityState = 'hidden';
    await follow();
    await pass(LONG_MS);
    expect([reads, open()]).to.deep.equal([0, []]);
    await show('visible');
    expect([reads, open().length]).to.deep.equal([1, 1]);
    await show('hidden');
    await pass(LONG_MS);
    expect([reads, open()]).to.deep.equal([1, []]);
    await show('visible');
    expect([reads, open().length]).to.deep.equal([2, 1]);
  });

  for (const [what, leave] of [
    ['hidden', () => show('hidden')],
    ['closed', async () => following?.stop()],
  ] as const)
    it(`is not streamed if the page is ${what} while it is read`, async () => {
      const reading = newDeferred<Overview>();
      await follow(() => reading.promise);
      await leave();
      reading.resolve(overviewOf('late'));
      await pass(LONG_MS);
      expect([told, open()]).to.deep.equal([[], []]);
    });

  it('is not read again if the page is hidden while a read fails', async () => {
    const reading = newDeferred<Overview>();
    await follow(() => {
      reads++;
      return reading.promise;
    });
    await show('hidden');
    reading.reject(LOST);
    await settled();
    await pass(LONG_MS);
    expect(reads).to.equal(1);
  });

  it('is left alone after the page stopped', async () => {
    await follow();
    following?.stop();
    await show('hidden');
    await show('visible');
    await pass(LONG_MS);
    expect([reads, open()]).to.deep.equal([1, []]);
  });
});
