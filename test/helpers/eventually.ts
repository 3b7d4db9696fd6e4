// eslint-disable-next-line no-restricted-syntax -- real time: what happens in other processes is asked for.
import { setTimeout as sleep } from 'node:timers/promises';
import { systemTime } from '../../service/base/time';

/** Questions end after this time, which only a failure reaches. */
const DEADLINE_MS = 240_000;

/** The pause after a question, as a part of the time that has passed: each question takes processor time. */
const PAUSE = 0.1;
const LONGEST_PAUSE_MS = 250;

/**
 * Waits until `probe` returns a value other than undefined or false, and returns the value. Fails with `what`
 * if that takes too long.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | Promise<T>,
  { withinMs = DEADLINE_MS, everyMs = 25 } = {},
): Promise<NonNullable<T>> {
  const begun = systemTime.now();
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false && value !== null) return value;
    const passed = systemTime.now() - begun;
    if (passed > withinMs) throw new Error(`did not happen within ${withinMs} ms: ${what}`);
    await sleep(Math.max(everyMs, Math.min(passed * PAUSE, LONGEST_PAUSE_MS)));
  }
}
