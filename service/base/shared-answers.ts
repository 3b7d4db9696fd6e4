import type { Clock } from './clock';

/**
 * Wraps a request that may hang. One request runs at a time: callers that arrive meanwhile share its answer,
 * so that requests do not pile up.
 *
 * @returns a function that takes a timeout in milliseconds. It resolves to the answer, or to undefined if the
 *   request fails or takes longer.
 */
export function answerInTime<T>(ask: () => Promise<T>): (withinMs: number) => Promise<T | undefined> {
  let underWay: Promise<T | undefined> | undefined;
  const begin = (): Promise<T | undefined> =>
    ask()
      .catch(() => undefined)
      .finally(() => (underWay = undefined));
  return async (withinMs) => {
    const answer = (underWay ??= begin());
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), withinMs);
    });
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  };
}

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
