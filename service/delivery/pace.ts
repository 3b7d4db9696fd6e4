/** The rate of deliveries, and the number of deliveries to claim ahead. */
export interface Pace {
  /** To be called when a delivery has ended. */
  ended(): void;
  ahead(): number;
}

/**
 * Sets the number to claim ahead to that of the deliveries that ended in the last `windowMs`, between `least`
 * and `most`. For a slow receiver little is claimed ahead, so that few deliveries wait for a lease to end if
 * this process dies.
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
