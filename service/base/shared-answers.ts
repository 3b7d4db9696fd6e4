import { type Time, newDeferred } from './time';

/** How often a question is asked, and how long its last answer is given again. Durations in milliseconds. */
export interface Sharing {
  time: Time;
  /** Least time from one question to the next. */
  leastMs?: number;
  /** An answer that is younger is given while a newer one is late or fails. */
  keptMs?: number;
  /** The question takes longer the more there is to count: it gets at most a twentieth of the time. */
  isPaced?: boolean;
}

/** After a failure it is asked again soon, though not by every caller. */
const RETRY_MS = 10_000;
/** A paced question is asked again after this many times as long as its answer took. */
const TIMES = 20;

/**
 * Wraps a question that may take long, hang or fail. It is asked when somebody wants to know, once at a time:
 * callers that arrive meanwhile share the answer, so that requests do not pile up.
 *
 * @returns a function that takes a time limit in milliseconds. It resolves to the answer, or to undefined if
 *   there is none in time.
 */
export function shared<T>(
  ask: () => Promise<T>,
  { time, leastMs = 0, keptMs = 0, isPaced = false }: Sharing,
): (withinMs: number) => Promise<T | undefined> {
  let last: { answer: T; at: number } | undefined;
  /** The last question that was asked has no answer, or none yet. */
  let isLacking = false;
  let underWay: Promise<void> | undefined;
  let askedAt = Infinity;
  let nextAt = -Infinity;

  async function refresh(): Promise<void> {
    const at = (askedAt = time.now());
    const began = time.elapsed();
    isLacking = true;
    try {
      last = { answer: await ask(), at };
      isLacking = false;
    } catch {
      // Nobody has to know: the answer is missing, or is the last one.
    } finally {
      const least = isLacking ? Math.min(leastMs, RETRY_MS) : leastMs;
      nextAt = at + Math.max(least, isPaced ? TIMES * (time.elapsed() - began) : 0);
    }
  }

  /** A system clock that is set back delays no question. */
  function isDue(): boolean {
    const now = time.now();
    return now >= nextAt || now < askedAt;
  }

  return async (withinMs) => {
    if (underWay !== undefined || isDue()) {
      // Within `refresh`, an `ask` that throws at once would end it before it is noted.
      underWay ??= refresh().finally(() => (underWay = undefined));
      const late = newDeferred<void>();
      await Promise.race([underWay, late.promise]).finally(time.later(withinMs, late.resolve));
    }
    const isGiven = last !== undefined && (!isLacking || time.now() - last.at < keptMs);
    return isGiven ? last?.answer : undefined;
  };
}
