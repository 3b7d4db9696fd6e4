import timersPromises from 'node:timers/promises';

const DEADLINE_MS = 60_000;

/** Time outside of the suites that hasten it. */
const REAL = {
  setTimeout: globalThis.setTimeout,
  sleep: timersPromises.setTimeout,
  now: performance.now.bind(performance),
};

/**
 * Waits until `probe` returns a value other than undefined or false, and returns the value. Fails with `what`
 * if that takes too long.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | Promise<T>,
  { withinMs = DEADLINE_MS, everyMs = 25 } = {},
): Promise<NonNullable<T>> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false && value !== null) return value;
    if (Date.now() > deadline) throw new Error(`did not happen within ${withinMs} ms: ${what}`);
    await REAL.sleep(everyMs);
  }
}

/**
 * Makes time pass `times` as fast in this process during the tests of a suite: back-offs, patience and polls
 * are shorter, and keep their proportions. `Date` stays real, because other processes share it. Call it in a
 * `describe`.
 */
export function hastenSuite(times: number): void {
  before(() => {
    const since = REAL.now();
    const later = (work: () => void, ms = 0, ...given: []) => REAL.setTimeout(work, ms / times, ...given);
    globalThis.setTimeout = later as typeof setTimeout;
    Object.assign(timersPromises, {
      setTimeout: (ms = 0, ...given: []) => REAL.sleep(ms / times, ...given),
    });
    performance.now = () => since + (REAL.now() - since) * times;
  });

  after(() => {
    globalThis.setTimeout = REAL.setTimeout;
    Object.assign(timersPromises, { setTimeout: REAL.sleep });
    performance.now = REAL.now;
  });
}
