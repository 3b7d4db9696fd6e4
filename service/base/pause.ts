import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

/** Sleeps; returns early when the signal aborts. Any number of callers may wait on one signal. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  // Node.js would print a warning about a memory leak when more than ten wait.
  setMaxListeners(0, signal);
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/**
 * Runs work again and again, with a pause after each run.
 *
 * @param work ends early when the signal aborts, and never rejects.
 * @param firstAfterMs the pause before the first run.
 * @returns `stop`, which resolves after a current run has ended.
 */
export function repeat(
  work: (signal: AbortSignal) => Promise<void>,
  everyMs: number,
  firstAfterMs = 0,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  async function run(): Promise<void> {
    if (firstAfterMs > 0) await pause(firstAfterMs, signal);
    while (!signal.aborted) {
      await work(signal);
      await pause(everyMs, signal);
    }
  }
  const finished = run();
  return {
    async stop() {
      stopping.abort();
      await finished;
    },
  };
}
