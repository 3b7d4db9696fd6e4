import type { Clock } from '../base/clock';
import { answerInTime } from '../observability/answer-in-time';

/** A question is asked again after this many times as long as its answer took. */
const TIMES = 20;

/** Milliseconds to wait for an answer before the last one is given again. */
export interface Pace {
  /** Between two questions, however short the answer takes. */
  leastMs: number;
  withinMs: number;
}

/**
 * Wraps a question whose answer takes longer the more there is to count. It takes at most a twentieth of the
 * time. The last answer is given again between two questions, and while an answer is late or fails.
 */
export function paced<T>(
  ask: () => Promise<T | undefined>,
  clock: Clock,
  { leastMs, withinMs }: Pace,
): () => Promise<T | undefined> {
  let known: T | undefined;
  let nextAt = -Infinity;
  const refresh = answerInTime(async () => {
    const beganAt = clock.now();
    const began = performance.now();
    try {
      known = (await ask()) ?? known;
    } finally {
      nextAt = beganAt + Math.max(leastMs, TIMES * (performance.now() - began));
    }
  });
  return async () => {
    if (clock.now() >= nextAt) await refresh(withinMs);
    return known;
  };
}
