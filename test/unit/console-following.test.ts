import { mock } from 'node:test';
import { expect } from 'chai';
import type { TaggedOverview } from '../../console/requests/api';
import { RequestFailure } from '../../console/requests/request';
import { newDeferred } from '../../service/base/time';
import type { Overview } from '../../service/console/views';
import { stopLater } from '../helpers/resources';

type Following = Record<'stop' | 'pause' | 'retry', () => void>;
type Read = (etag: string | undefined, signal: AbortSignal) => Promise<TaggedOverview | undefined>;
type Listener = { overview: (overview: Overview) => void; connected: () => void; lost: () => void };
type FollowOverview = (read: Read, listener: Listener) => Following;

/** Only the compiler of console/ knows the types of a browser, which this module needs. */
const MODULE: string = '../../console/requests/follow-overview';

const LOST = new RequestFailure(0, 'CONNECTION_LOST', 'The service did not answer.');
const ENDED = new RequestFailure(401, 'CONSOLE_SESSION_ENDED', 'There is no session.');
const LONG_MS = 600_000;

const answerOf = (revision: string): TaggedOverview => ({
  etag: `"${revision}"`,
  overview: { revision } as Overview,
});

/** Lets promises settle. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the overview that a page follows', () => {
  const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  let followOverview: FollowOverview;
  let following: Following | undefined;
  /** The failures of the next reads; the others succeed. */
  let failures: (Error | undefined)[];
  /** The ETags that were named. */
  let reads: (string | undefined)[];
  let present: string;
  let told: string[];

  before(async () => {
    ({ followOverview } = (await import(MODULE)) as { followOverview: FollowOverview });
    Object.assign(globalThis, { document: page });
    stopLater('document', () => Reflect.deleteProperty(globalThis, 'document'));
  });
  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    // The middle: a first pause of half a second.
    mock.method(Math, 'random', () => 0.5);
    page.visibilityState = 'visible';
    [failures, reads, told, present] = [[], [], [], 'first'];
  });
  afterEach(() => {
    following?.stop();
    following = undefined;
    mock.restoreAll();
    mock.timers.reset();
  });

  async function read(etag: string | undefined): Promise<TaggedOverview | undefined> {
    const failure = failures.shift();
    reads.push(etag);
    if (failure) throw failure;
    return etag === `"${present}"` ? undefined : answerOf(present);
  }

  const follow = async (reading: Read = read): Promise<void> => {
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

  it('is asked for each second, and told only if it is another', async () => {
    await follow();
    await pass(999);
    expect(reads).to.deep.equal([undefined]);
    await pass(1);
    expect(reads).to.deep.equal([undefined, '"first"']);
    present = 'second';
    await pass(1_000);
    expect(told).to.deep.equal(['first', 'connected', 'second']);
  });

  it('is asked for again after a session was refused, because the page may stay', async () => {
    await follow();
    failures = [ENDED];
    await pass(1_000);
    await pass(500);
    expect([reads.length, told]).to.deep.equal([3, ['first', 'connected', 'connected']]);
  });

  it('is lost when a second answer fails, until one comes', async () => {
    await follow();
    failures = [LOST, LOST];
    await pass(1_000);
    expect(told).not.to.include('lost');
    await pass(500);
    expect(told.slice(2)).to.deep.equal(['lost']);
    await pass(1_000);
    expect(told.slice(3)).to.deep.equal(['connected']);
    // The next attempt is not waited for as long, and one failure is not told.
    failures = [LOST];
    await pass(1_000);
    await pass(500);
    expect(told.slice(4)).to.deep.equal(['connected']);
  });

  it('is lost at once if it was never read, and is asked for after pauses of 30 s at most', async () => {
    const pauses = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
    failures = pauses.map(() => LOST);
    await follow();
    for (const [index, pauseMs] of pauses.entries()) {
      expect(new Set(told)).to.deep.equal(new Set(['lost']));
      await pass(pauseMs - 1);
      expect(reads).to.have.length(index + 1);
      await pass(1);
    }
    expect(told.slice(-2)).to.deep.equal(['first', 'connected']);
  });

  it('is not lost after one failure of a page whose answers are empty', async () => {
    await follow(() => read('"first"'));
    failures = [LOST];
    await pass(1_000);
    await pass(500);
    expect(told).to.deep.equal(['connected', 'connected']);
  });

  it('is not asked for after a pause until somebody wants it, and then at once', async () => {
    failures = [LOST, LOST, LOST];
    await follow();
    await pass(500);
    await pass(1_000);
    following?.pause();
    await pass(LONG_MS);
    expect(reads).to.have.length(3);
    following?.retry();
    await settled();
    expect(told.slice(-2)).to.deep.equal(['first', 'connected']);
    // No attempt is left from before.
    await pass(999);
    expect(reads).to.have.length(4);
  });

  it('is not asked for while the page is hidden', async () => {
    page.visibilityState = 'hidden';
    await follow();
    await pass(LONG_MS);
    expect(reads).to.deep.equal([]);
    await show('visible');
    expect(told).to.deep.equal(['first', 'connected']);
    await show('hidden');
    await pass(LONG_MS);
    expect(reads).to.have.length(1);
    await show('visible');
    expect(told.slice(2)).to.deep.equal(['connected']);
  });

  for (const [what, leave] of [
    ['hidden', () => show('hidden')],
    ['closed', async () => following?.stop()],
    ['paused for the log-out', async () => following?.pause()],
  ] as const)
    for (const isAnswered of [true, false])
      it(`is left alone if the page is ${what} before ${isAnswered ? 'an answer' : 'it fails'}`, async () => {
        const reading = newDeferred<TaggedOverview>();
        const asked: AbortSignal[] = [];
        await follow((_, signal) => {
          asked.push(signal);
          return reading.promise;
        });
        await leave();
        if (isAnswered) reading.resolve(answerOf('late'));
        else reading.reject(LOST);
        await settled();
        await pass(LONG_MS);
        expect([told, asked.map(({ aborted }) => aborted)]).to.deep.equal([[], [true]]);
      });

  it('is left alone after the page stopped', async () => {
    await follow();
    following?.stop();
    await show('hidden');
    await show('visible');
    await pass(LONG_MS);
    expect(reads).to.have.length(1);
  });
});
