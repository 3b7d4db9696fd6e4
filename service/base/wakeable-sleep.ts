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
  let isWoken = false;
  let end: (() => void) | undefined;
  return {
    wake() {
      isWoken = true;
      end?.();
    },
    reset() {
      isWoken = false;
    },
    async sleep(ms) {
      if (isWoken) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        end = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      end = undefined;
    },
  };
}
