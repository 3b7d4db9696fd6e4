import { BusyError } from './errors';
import type { Time } from './time';

/** Number of permits, maximum number of waiting callers, and their timeout. */
export interface SemaphoreOptions {
  permits: number;
  waiting: number;
  /** Milliseconds. */
  waitMs: number;
}

/**
 * Creates a counting semaphore whose queue is bounded, first come, first served. All permits are free.
 *
 * @param busy the message for callers who wait too long, or find too many waiting.
 */
export function createSemaphore(time: Time, { permits, waiting, waitMs }: SemaphoreOptions, busy: string) {
  let free = permits;
  const queue = new Set<(outcome: (() => void) | Error) => void>();

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

  /**
   * Waits for a permit, and resolves to a function that releases it. Later calls of that do nothing.
   *
   * @param left aborts when the caller has gone away.
   * @throws BusyError; the signal's reason.
   */
  async function acquire(left: AbortSignal): Promise<() => void> {
    left.throwIfAborted();
    if (free > 0) {
      free--;
      return newRelease();
    }
    if (queue.size >= waiting) throw new BusyError(busy, waitMs);
    return new Promise((resolve, reject) => {
      const settle = (outcome: (() => void) | Error): void => {
        queue.delete(settle);
        cancel();
        left.removeEventListener('abort', leave);
        if (typeof outcome === 'function') resolve(outcome);
        else reject(outcome);
      };
      const leave = (): void => settle(left.reason as Error);
      const cancel = time.later(waitMs, () => settle(new BusyError(busy, waitMs)));
      left.addEventListener('abort', leave);
      queue.add(settle);
    });
  }

  return {
    figures: () => ({ held: permits - free, waiting: queue.size }),
    acquire,
    /** Works while it holds a permit. @throws what `acquire` throws. */
    async hold<T>(this: void, left: AbortSignal, work: () => Promise<T>): Promise<T> {
      const release = await acquire(left);
      return work().finally(release);
    },
  };
}
