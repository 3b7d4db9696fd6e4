import type { Clock } from '../base/clock';

/** Callers within `leastMs` milliseconds share one call of `ask`, and its result. */
export function atMostEvery<T>(ask: () => Promise<T>, clock: Clock, leastMs: number): () => Promise<T> {
  let last: Promise<T> | undefined;
  let nextAt = -Infinity;
  return () => {
    const beganAt = clock.now();
    if (last !== undefined && beganAt < nextAt) return last;
    nextAt = Infinity;
    last = ask().finally(() => (nextAt = beganAt + leastMs));
    return last;
  };
}
