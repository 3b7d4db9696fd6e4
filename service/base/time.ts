import { setMaxListeners } from 'node:events';

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

/** Sleeps; returns early when the signal aborts. Any number of callers may wait on one signal. */
export async function pause(time: Time, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return;
  const { promise, resolve } = newDeferred<void>();
  const cancel = time.later(ms, resolve);
  await (signal ? untilAborted(signal, promise).catch(() => undefined) : promise);
  cancel();
}

/**
 * Runs work again and again, with a pause after each run.
 *
 * @param work ends early when the signal aborts, and never rejects.
 * @param firstAfterMs the pause before the first run.
 * @returns `stop`, which resolves after a current run has ended.
 */
export function repeat(
  time: Time,
  work: (signal: AbortSignal) => Promise<void>,
  everyMs: number,
  firstAfterMs = 0,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  async function run(): Promise<void> {
    if (firstAfterMs > 0) await pause(time, firstAfterMs, signal);
    while (!signal.aborted) {
      await work(signal);
      await pause(time, everyMs, signal);
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

/** A sleep of one sleeper, which can be ended early, even before it begins. */
export interface WakeableSleep {
  /** Ends the sleep, or the next one if none is under way. */
  wake(this: void): void;
  /** Forgets earlier calls of `wake`. */
  reset(this: void): void;
  sleep(this: void, ms: number): Promise<void>;
}

/** Makes a sleep without a listener of a signal each time, which busy sleepers could not afford. */
export function createWakeableSleep(time: Time): WakeableSleep {
  let isWoken = false;
  let end: () => void = () => undefined;
  return {
    wake() {
      isWoken = true;
      end();
    },
    reset: () => void (isWoken = false),
    async sleep(ms) {
      if (isWoken) return;
      const { promise, resolve } = newDeferred<void>();
      const cancel = time.later(ms, resolve);
      end = () => {
        cancel();
        resolve();
      };
      return promise;
    },
  };
}

/**
 * Waits for a promise until the signal aborts, so that a hanging node cannot prevent the service from
 * stopping. The promise's later outcome is ignored.
 *
 * @throws the signal's reason if it aborts first.
 */
export async function untilAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  signal.throwIfAborted();
  // Node.js would print a warning about a memory leak when more than ten wait.
  setMaxListeners(0, signal);
  let end: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    end = () => reject(signal.reason as Error);
    signal.addEventListener('abort', end, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    if (end) signal.removeEventListener('abort', end);
  }
}

/**
 * Works with a signal that aborts after so many milliseconds, with the reason of `AbortSignal.timeout` or
 * this one.
 */
export async function within<T>(
  time: Time,
  ms: number,
  work: (late: AbortSignal) => Promise<T>,
  reason: Error = new DOMException('The operation was aborted due to timeout', 'TimeoutError'),
): Promise<T> {
  const late = new AbortController();
  return work(late.signal).finally(time.later(ms, () => late.abort(reason)));
}

const SLOW_MS = 3_000;

/** Waits for work, and calls `tell` once when the work takes longer than three seconds. */
export async function toldIfSlow<T>(time: Time, work: Promise<T>, tell: () => void): Promise<T> {
  return work.finally(time.later(SLOW_MS, tell));
}

/** A promise, and the functions that settle it. */
export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: Error) => void;
}

/** Node.js 20 has no Promise.withResolvers. */
export function newDeferred<T>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = () => undefined;
  let reject: Deferred<T>['reject'] = () => undefined;
  const promise = new Promise<T>((resolved, rejected) => {
    resolve = resolved;
    reject = rejected;
  });
  return { promise, resolve, reject };
}

/** The pause of a header Retry-After, which may be seconds or an HTTP date. */
export function retryAfterMsOf(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now;
  return Number.isFinite(ms) && ms > 0 ? ms : undefined;
}
