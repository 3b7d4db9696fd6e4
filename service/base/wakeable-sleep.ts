/** A sleep that can be ended early, even before it begins. */
export interface WakeableSleep {
  /** Ends the sleep, or the next one if none is under way. */
  wake: () => void;
  /** Forgets earlier calls of `wake`. */
  reset(): void;
  sleep(ms: number): Promise<void>;
}

/**
 * Makes a sleep for one sleeper. Ending a pause of `node:timers/promises` by a signal makes an error each
 * time, which busy sleepers cannot afford.
 */
export function createWakeableSleep(): WakeableSleep {
  let isWoken = false;
  let end: () => void = () => undefined;
  return {
    wake() {
      isWoken = true;
      end();
    },
    reset: () => void (isWoken = false),
    sleep(ms) {
      if (isWoken) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        end = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    },
  };
}
