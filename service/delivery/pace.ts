/** How fast deliveries go, and so how many to claim ahead. */
export interface Pace {
  /** A delivery has ended. */
  ended(): void;
  ahead(): number;
}

/**
 * Follows the pace: as many ahead as ended in the last `windowMs`, at least `least`, at most `most`. A
 * receiver that is slow, or slow to fail, gets little claimed ahead, so that little is held when this process
 * dies.
 */
export function createPace(least: number, most: number, windowMs: number): Pace {
  let windowStart = performance.now();
  let ended = 0;
  let ahead = least;
  return {
    ended() {
      ended++;
      const elapsed = performance.now() - windowStart;
      if (elapsed < windowMs) return;
      ahead = Math.min(most, Math.max(least, Math.round((ended / elapsed) * windowMs)));
      ended = 0;
      windowStart = performance.now();
    },
    ahead: () => ahead,
  };
}
