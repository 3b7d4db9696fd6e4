import { setTimeout as sleep } from 'node:timers/promises';

const DEADLINE_MS = 60_000;

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
    await sleep(everyMs);
  }
}
