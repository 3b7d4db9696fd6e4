import type { Clock } from '../base/clock';

/** Slows wrong attempts to log in down, for each address that they come from. */
export interface Attempts {
  /** Milliseconds until the next wrong attempt; 0: now. */
  waitOf(address: string): number;
  failed(address: string): void;
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
const FORGOTTEN_AFTER_MS = 10 * 60_000;
/** The address that failed first is forgotten when there are more. */
const MOST_ADDRESSES = 1_000;

/**
 * Remembers wrong attempts: each doubles the time that the next has to wait. Ten minutes without another
 * forget them.
 */
export function createAttempts(clock: Clock): Attempts {
  const failures = new Map<string, { times: number; at: number }>();

  function failuresOf(address: string): { times: number; at: number } | undefined {
    const found = failures.get(address);
    if (found === undefined || clock.now() - found.at < FORGOTTEN_AFTER_MS) return found;
    failures.delete(address);
    return undefined;
  }

  return {
    waitOf(address) {
      const found = failuresOf(address);
      if (found === undefined) return 0;
      const wait = Math.min(FIRST_WAIT_MS * 2 ** (found.times - 1), LONGEST_WAIT_MS);
      return Math.max(0, found.at + wait - clock.now());
    },
    failed(address) {
      const times = (failuresOf(address)?.times ?? 0) + 1;
      failures.delete(address);
      failures.set(address, { times, at: clock.now() });
      const [first = address] = failures.keys();
      if (failures.size > MOST_ADDRESSES) failures.delete(first);
    },
  };
}
