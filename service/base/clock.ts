/** Source of the time. Tests replace it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
}

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now() };

/** A time (epoch milliseconds) as ISO 8601 in UTC. */
export function timeAt(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
