import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import { CallerLeftError, ServiceError } from '../../service/base/errors';
import type { Time } from '../../service/base/time';
import { createWorkers, type WorkersOptions } from '../../service/base/workers';
import { errorOf } from '../helpers/error-of';

const stay = new AbortController().signal;
const lost = (cause: unknown): ServiceError =>
  new ServiceError('CHECK_ENDED', 'The worker ended.', { cause });

describe('workers', () => {
  /** All that were started, with the tasks of each. Each stays until the test ends it. */
  let started: { events: EventEmitter & { unref(): void }; tasks: unknown[]; isKilled: boolean }[];
  /** The work that is due after so many milliseconds. */
  let due: Map<() => void, number>;

  beforeEach(() => {
    started = [];
    due = new Map();
  });

  const time: Time = {
    now: () => 0,
    elapsed: () => 0,
    later(ms, work) {
      due.set(work, ms);
      return () => due.delete(work);
    },
  };

  const pass = (ms: number): void => {
    for (const [work, after] of due) if (after === ms) work();
  };

  const workersWith = (options: Partial<WorkersOptions<string>>) =>
    createWorkers<string, string>({
      ...{ time, lost, permits: 1, waiting: 10, waitMs: 60_000, busy: 'busy' },
      open() {
        const worker = {
          events: Object.assign(new EventEmitter(), { unref: () => undefined }),
          tasks: [] as unknown[],
          isKilled: false,
        };
        started.push(worker);
        return {
          ...{ events: worker.events, isLoaded: true },
          send: async (message) => void worker.tasks.push(message),
          kill: () => void (worker.isKilled = true),
        };
      },
      ...options,
    });
  const answer = (number: number): unknown => started[number]?.events.emit('message', { result: 'done' });

  it('give no task to a worker that was idle too long and has not ended yet', async () => {
    const { run } = workersWith({ idleMs: 1_000 });
    const first = run('first', stay);
    await new Promise(setImmediate);
    answer(0);
    expect(await first).to.equal('done');
    pass(1_000);
    expect(started[0]).to.include({ isKilled: true });
    const second = run('second', stay);
    await new Promise(setImmediate);
    started[0]?.events.emit('exit', null, 'SIGKILL');
    answer(1);
    expect(await second).to.equal('done');
    expect(started.map(({ tasks }) => tasks)).to.deep.equal([[{ task: 'first' }], [{ task: 'second' }]]);
  });

  it('give no task to a worker whose caller left, although it answered before it ended', async () => {
    const { run } = workersWith({ abandonedMs: 1_000 });
    const leaving = new AbortController();
    const first = run('first', leaving.signal);
    const second = run('second', stay);
    await new Promise(setImmediate);
    leaving.abort(new CallerLeftError());
    pass(1_000);
    answer(0);
    expect(await first).to.equal('done');
    await new Promise(setImmediate);
    expect(started[1]?.tasks).to.deep.equal([{ task: 'second' }]);
    started[1]?.events.emit('exit', 1);
    const { code, cause } = await errorOf(second);
    expect([code, (cause as Error).message]).to.deep.equal(['CHECK_ENDED', 'The worker ended with 1.']);
  });

  it('keep the process alive while a caller waits for a thread that loads', async () => {
    const events = Object.assign(new EventEmitter(), { unref: () => undefined });
    const thread = { events, isLoaded: false, send: async () => undefined, kill: () => undefined };
    const { run } = workersWith({ open: () => thread });
    const first = run('first', stay);
    await new Promise(setImmediate);
    expect(due.size, 'timers').to.equal(1);
    events.emit('message', { isLoaded: true });
    await new Promise(setImmediate);
    events.emit('message', { result: 'done' });
    expect(await first).to.equal('done');
    expect(due.size, 'timers left').to.equal(0);
  });

  it('let a caller leave while a thread loads, and keep neither its turn nor the process', async () => {
    const events = Object.assign(new EventEmitter(), { unref: () => undefined });
    const thread = { events, isLoaded: false, send: async () => undefined, kill: () => undefined };
    const { run, figures } = workersWith({ open: () => thread });
    const leaving = new AbortController();
    const first = errorOf(run('first', leaving.signal));
    await new Promise(setImmediate);
    leaving.abort(new CallerLeftError());
    expect(await first).to.be.instanceOf(CallerLeftError);
    expect(figures()).to.include({ held: 0, waiting: 0 });
    expect(due.size, 'timers left').to.equal(0);
  });
});
