import { setImmediate as nextTurn } from 'node:timers/promises';

/** Rows per statement. SQLite blocks the event loop, and PostgreSQL takes at most 65,535 parameters. */
const ROWS = 500;

/** Calls `work` with the items, some at a time and in order. Returns the joined results of the calls. */
export async function inBatches<T, R>(
  items: readonly T[],
  work: (some: T[]) => Promise<readonly R[]>,
  size = ROWS,
): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += size)
    for (const one of await work(items.slice(from, from + size))) results.push(one);
  return results;
}

/**
 * Repeats a step, such as a short transaction, until it found nothing more to do. If the signal aborts, it
 * ends after the current step. The event loop runs between two steps.
 *
 * @param step returns how much it did.
 * @returns how much all steps did.
 */
export async function untilNothingIsLeft(step: () => Promise<number>, signal?: AbortSignal): Promise<number> {
  let total = 0;
  for (let done = 1; done > 0 && !signal?.aborted; await nextTurn()) total += done = await step();
  return total;
}
