/* global __filename, performance, process, setTimeout */
const timersPromises = require('node:timers/promises');

/** Time outside of the suites that hasten it. */
const REAL = {
  setTimeout,
  sleep: timersPromises.setTimeout,
  now: performance.now.bind(performance),
};

/**
 * Makes time pass `times` as fast in this process: back-offs, patience and polls are shorter, and keep their
 * proportions. `Date` stays real, because other processes share it.
 *
 * @param longest if given, only pauses of up to this many milliseconds are shorter, so that time limits stay as
 *   they are.
 * @returns a function that makes time real again.
 */
function hasten(times, longest) {
  const since = REAL.now();
  const hastened = (ms) => (longest === undefined || ms <= longest ? ms / times : ms);
  globalThis.setTimeout = (work, ms = 0, ...given) => REAL.setTimeout(work, hastened(ms), ...given);
  timersPromises.setTimeout = (ms = 0, ...given) => REAL.sleep(hastened(ms), ...given);
  if (longest === undefined) performance.now = () => since + (REAL.now() - since) * times;
  return () => {
    globalThis.setTimeout = REAL.setTimeout;
    timersPromises.setTimeout = REAL.sleep;
    performance.now = REAL.now;
  };
}

/** Settings of a process in which time passes `times` as fast: it loads this file first. */
function hastenedProcess(times) {
  const others = process.env.NODE_OPTIONS ?? '';
  return { NODE_OPTIONS: `${others} --require=${__filename}`.trim(), HASTENED: String(times) };
}

if (process.env.HASTENED !== undefined) hasten(Number(process.env.HASTENED));

module.exports = { REAL, hasten, hastenedProcess };
