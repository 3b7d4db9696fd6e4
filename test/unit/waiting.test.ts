import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { systemTime, newDeferred, pause, toldIfSlow, untilAborted } from '../../service/base/time';
import { stopLater } from '../helpers/resources';
import { VirtualTime } from '../helpers/virtual-time';

describe('waiting for a promise until a signal aborts', () => {
  const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
    promise.then(
      () => 'did not fail',
      (error: unknown) => error,
    );

  it("gives the promise's value or failure", async () => {
    const { signal } = new AbortController();
    const failure = new Error('the node says no');
    expect(await untilAborted(signal, Promise.resolve(7))).to.equal(7);
    expect(await failureOf(untilAborted(signal, Promise.reject(failure)))).to.equal(failure);
  });

  it("rejects with the signal's reason when it aborts, or if it has aborted already", async () => {
    const abort = new AbortController();
    const reason = new Error('stopping');
    const waiting = failureOf(untilAborted(abort.signal, new Promise(() => undefined)));
    abort.abort(reason);
    expect(await waiting).to.equal(reason);
    expect(await failureOf(untilAborted(abort.signal, Promise.resolve(7)))).to.equal(reason);
  });

  it('causes no unhandled rejection if the promise fails after the abort', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    stopLater('note', () => process.off('unhandledRejection', note));
    const abort = new AbortController();
    let fail: ((error: Error) => void) | undefined;
    const late = new Promise((_resolve, reject) => (fail = reject));
    const waiting = failureOf(untilAborted(abort.signal, late));
    abort.abort();
    await waiting;
    // The same if the signal aborted before the wait.
    await failureOf(untilAborted(abort.signal, Promise.reject(new Error('early'))));
    fail?.(new Error('late'));
    for (let turns = 0; turns < 3; turns++) await turn();
    expect(unhandled).to.deep.equal([]);
  });
});

describe('a pause', () => {
  it('ends early for all who wait on a signal, and warns of no leak however many they are', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => {
      if (warning.name === 'MaxListenersExceededWarning') warnings.push(warning);
    };
    process.on('warning', note);
    const stopping = new AbortController();
    const waiting = Array.from({ length: 50 }, () => pause(systemTime, 60_000, stopping.signal));
    stopping.abort();
    await Promise.all(waiting);
    await turn();
    process.off('warning', note);
    expect(warnings.map(({ message }) => message)).to.deep.equal([]);
  });
});

describe("the machine's time", () => {
  // Node.js takes one millisecond for a time that it cannot count.
  it('does nothing at once that is due in a month, or never', async () => {
    const warnings: string[] = [];
    const note = (warning: Error): void => void warnings.push(warning.name);
    process.on('warning', note);
    // eslint-disable-next-line no-restricted-syntax -- real time: it is what the test is about.
    const cancels = [2 ** 31, Infinity].map((ms) => systemTime.later(ms, () => undefined));
    await turn();
    for (const cancel of cancels) cancel();
    process.off('warning', note);
    expect(warnings).to.deep.equal([]);
  });
});

describe('work that may be slow', () => {
  it('is told of once after three seconds, and not if it is over by then', async () => {
    const time = new VirtualTime();
    const [slow, fast] = [newDeferred<number>(), newDeferred<number>()];
    const told: string[] = [];
    const works = [
      toldIfSlow(time, slow.promise, () => told.push('slow')),
      toldIfSlow(time, fast.promise, () => told.push('fast')),
    ];
    await time.pass(2_999);
    fast.resolve(1);
    expect(await works[1]).to.equal(1);
    expect(told).to.deep.equal([]);
    await time.pass(60_000);
    expect(told).to.deep.equal(['slow']);
    slow.resolve(2);
    expect(await works[0]).to.equal(2);
  });
});
