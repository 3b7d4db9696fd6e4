import type { Clock } from '../base/clock';

/** A question is asked again after this many times as long as its answer took. */
const TIMES = 20;

/**
 * Wraps a question whose answer takes longer the more there is to count. It takes at most a twentieth of the
 * time, and between the last answer is given again.
 *
 * @param leastMs milliseconds between two questions, however short the answer takes.
 */
export function paced<T>(ask: () => Promise<T>, clock: Clock, leastMs: number): () => Promise<T> {
  let last: Promise<T> | undefined;
  let nextAt = -Infinity;
  return () => {
    const beganAt = clock.now();
    if (last !== undefined && beganAt < nextAt) return last;
    nextAt = Infinity;
    const began = performance.now();
    last = ask().finally(() => {
      nextAt = beganAt + Math.max(leastMs, TIMES * (performance.now() - began));
    });
    return last;
  };
}
