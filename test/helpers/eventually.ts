import { createRequire } from 'node:module';
import type { setTimeout } from 'node:timers/promises';
import { stopLater } from './resources';

// A process can load this file first, so it is no TypeScript.
const time = createRequire(__filename)('./hastened-time.cjs') as {
  REAL: { sleep: typeof setTimeout };
  hasten(times: number, longest?: number): () => void;
  hastenedProcess(this: void, times: number): { NODE_OPTIONS: string; HASTENED: string };
};

const DEADLINE_MS = 60_000;

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
  const begun = Date.now();
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false && value !== null) return value;
    const passed = Date.now() - begun;
    if (passed > withinMs) throw new Error(`did not happen within ${withinMs} ms: ${what}`);
    await time.REAL.sleep(Math.max(everyMs, Math.min(passed * PAUSE, LONGEST_PAUSE_MS)));
  }
}

/**
 * Makes time pass `times` as fast in this process during the tests of a suite, or shortens only its pauses of
 * up to `longest` milliseconds. Call it in a `describe`.
 */
export function hastenSuite(times: number, longest?: number): void {
  before(() => void stopLater('hastened time', time.hasten(times, longest)));
}

/** Settings of a process in which time passes `times` as fast. */
export const { hastenedProcess } = time;
