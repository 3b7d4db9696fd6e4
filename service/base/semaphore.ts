/** Number of permits, maximum number of waiting callers, and their timeout. */
export interface SemaphoreOptions {
  permits: number;
  waiting: number;
  /** Milliseconds. */
  waitMs: number;
}

/** A function that releases the permit (later calls do nothing), or the reason why there is none. */
type Acquired = (() => void) | 'busy' | 'left';

/** A counting semaphore whose queue is bounded: first come, first served. */
export type Semaphore = ReturnType<typeof createSemaphore>;

/** Creates a semaphore whose permits are all free. */
export function createSemaphore({ permits, waiting, waitMs }: SemaphoreOptions) {
  let free = permits;
  const queue = new Set<(outcome: Acquired) => void>();

  const newRelease = (): (() => void) => {
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      const [next] = queue;
      if (next) next(newRelease());
      else free++;
    };
  };

  return {
    figures: () => ({ held: permits - free, waiting: queue.size }),
    /**
     * Waits for a permit.
     *
     * @param left aborts when the caller has gone away.
     */
    async acquire(left: AbortSignal): Promise<Acquired> {
      if (left.aborted) return 'left';
      if (free > 0) {
        free--;
        return newRelease();
      }
      if (queue.size >= waiting) return 'busy';
      return new Promise((resolve) => {
        const settle = (outcome: Acquired): void => {
          queue.delete(settle);
          clearTimeout(timer);
          left.removeEventListener('abort', leave);
          resolve(outcome);
        };
        const leave = (): void => settle('left');
        const timer = setTimeout(() => settle('busy'), waitMs);
        left.addEventListener('abort', leave);
        queue.add(settle);
      });
    },
  };
}
