import { setTimeout as pause } from 'node:timers/promises';

/** A sleep that can be ended early, even before it begins. */
export interface WakeableSleep {
  /** Ends the sleep, or the next one if none is under way. */
  wake: () => void;
  /** Forgets earlier calls of `wake`. */
  reset(): void;
  sleep(ms: number): Promise<void>;
}

/** Makes a sleep for one sleeper. */
export function createWakeableSleep(): WakeableSleep {
  let woken = new AbortController();
  return {
    wake: () => woken.abort(),
    reset: () => void (woken = new AbortController()),
    sleep: (ms) => pause(ms, undefined, { signal: woken.signal }).catch(() => undefined),
  };
}
