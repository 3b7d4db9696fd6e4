import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { pause } from '../../service/base/waiting';

describe('a pause', () => {
  it('ends early for all who wait on a signal, and warns of no leak however many they are', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => {
      if (warning.name === 'MaxListenersExceededWarning') warnings.push(warning);
    };
    process.on('warning', note);
    const stopping = new AbortController();
    const waiting = Array.from({ length: 50 }, () => pause(60_000, stopping.signal));
    stopping.abort();
    await Promise.all(waiting);
    await turn();
    process.off('warning', note);
    expect(warnings.map(({ message }) => message)).to.deep.equal([]);
  });
});
