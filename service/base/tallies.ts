import type { Clock } from './time';

/** How often something came of a name. Its users change it. */
export interface Tally {
  times: number;
  /** Since when it is counted, or when it was counted last: epoch milliseconds. */
  at: number;
}

/** The name that nobody has asked for the longest is forgotten when there are more. */
const MOST_NAMES = 1_000;

/**
 * Returns a function that finds the tally of a name.
 *
 * @param keptMs a tally from longer ago is forgotten; so is one from the future: the clock was set back.
 */
export function createTallies(clock: Clock, keptMs: number): (name: string) => Tally {
  const tallies = new Map<string, Tally>();
  return (name) => {
    const now = clock.now();
    const known = tallies.get(name);
    const tally = known && now >= known.at && now - known.at < keptMs ? known : { times: 0, at: now };
    tallies.delete(name);
    tallies.set(name, tally);
    const [first = name] = tallies.keys();
    if (tallies.size > MOST_NAMES) tallies.delete(first);
    return tally;
  };
}
