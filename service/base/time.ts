/** Source of the time of day. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
}

/**
 * All that the program knows of time. The composition root and the commands pass in the machine's. Tests pass
 * in a time that stands still until they let it pass.
 */
export interface Time extends Clock {
  /** Milliseconds of a clock that nobody sets: only the difference of two of its times has a meaning. */
  elapsed(): number;
  /** Does the work after so many milliseconds. The result cancels it. */
  later(ms: number, work: () => void): () => void;
}

/** Node.js waits one millisecond in place of a longer time. */
const LONGEST_MS = 2 ** 31 - 1;

/** The machine's time. Work that is due after 24 days is done then. */
export const systemTime: Time = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  later(ms, work) {
    const timer = setTimeout(work, Math.min(ms, LONGEST_MS));
    return () => clearTimeout(timer);
  },
};

/** A time (epoch milliseconds) as ISO 8601 in UTC. */
export function timeAt(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
