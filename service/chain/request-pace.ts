import { setTimeout as sleep } from 'node:timers/promises';

/** Spaces requests to a provider out while it says that they come too often. */
export interface RequestPace {
  /** Resolves when the next request may be sent, with the number of the pace that it is sent at. */
  turn(): Promise<number>;
  /** The provider refused a request as too many. `pace`: what `turn` gave for it. */
  refused(pace: number): void;
  /** The provider answered a request. */
  answered(): void;
  /** It was not the pace that the provider minded. */
  forget(): void;
}

/** The pause between two requests after a refusal: slow enough for the plans that cost nothing. */
const SLOW_INTERVAL_MS = 1_000;
/** What an answer leaves of the pause. */
const RECOVERY = 0.8;
/** Shorter is as good as none. */
const SHORTEST_INTERVAL_MS = 50;

/**
 * Providers count requests per second, each its own way (credits, compute units, requests), and tell nobody
 * beforehand: a plan without cost may allow two queries for logs a second. So the pace is found: a refusal
 * makes it slow, answers make it faster again.
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
      // Requests that were under way together are refused together: that is one refusal.
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
