import { setTimeout as sleep } from 'node:timers/promises';

const DEADLINE_MS = 60_000;

/**
 * Waits until `probe` gives something other than undefined or false, and returns it; fails with `what` when
 * it never does.
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
    await sleep(everyMs);
  }
}
