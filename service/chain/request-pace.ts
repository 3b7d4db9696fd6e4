import { setTimeout as sleep } from 'node:timers/promises';

/** Spaces requests out while the provider throttles them. */
export interface RequestPace {
  /** Resolves when the next request may be sent, with the number of the current pace. */
  turn(): Promise<number>;
  /** The provider throttled a request. `pace`: the number that `turn` gave for it. */
  refused(pace: number): void;
  /** The provider answered a request. */
  answered(): void;
  /** Removes the pause, because the refusal had another cause than the pace. */
  forget(): void;
}

/** The pause between two requests after a refusal, long enough for free plans. */
const SLOW_INTERVAL_MS = 1_000;
/** Each answer multiplies the pause by this. */
const RECOVERY = 0.8;
/** A shorter pause is dropped. */
const SHORTEST_INTERVAL_MS = 50;

/**
 * Providers limit requests per second, each in its own unit (credits, compute units, requests), and do not
 * declare the limit; a free plan may allow two log queries per second. The pace is therefore found: a
 * refusal slows it down, and answers speed it up again.
 */
export function createRequestPace(): RequestPace {
  let intervalMs = 0;
  let pace = 0;
  let nextAt = 0;
  return {
    async turn() {
      while (intervalMs > 0) {
        const now = performance.now();
        if (now >= nextAt) break;
        await sleep(nextAt - now);
      }
      nextAt = performance.now() + intervalMs;
      return pace;
    },
    refused(sentAt) {
      // Refusals of requests that were sent at the same pace count as one.
      if (sentAt !== pace) return;
      pace++;
      intervalMs = SLOW_INTERVAL_MS;
      nextAt = performance.now() + intervalMs;
    },
    answered() {
      intervalMs = intervalMs * RECOVERY < SHORTEST_INTERVAL_MS ? 0 : intervalMs * RECOVERY;
    },
    forget() {
      intervalMs = 0;
    },
  };
}
