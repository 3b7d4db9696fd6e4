const UNITS = [
  { unit: 'day', ms: 86_400_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'minute', ms: 60_000 },
  { unit: 'second', ms: 1000 },
] as const;

/** A time as seen from `now`: `in 5 seconds`, `2 minutes ago`. Clocks differ, so a second is nothing. */
export function relativeTime(at: number, now: number): string {
  const distance = Math.abs(at - now);
  const found = UNITS.find(({ ms }) => distance >= ms);
  if (!found || distance < 2000) return 'now';
  const words = countOf(Math.floor(distance / found.ms), found.unit);
  return at > now ? `in ${words}` : `${words} ago`;
}

/** A duration in its largest unit: `45 seconds`, `3 hours`. */
export function durationOf(seconds: number): string {
  const found = UNITS.find(({ ms }) => seconds * 1000 >= ms);
  return found ? countOf(Math.floor((seconds * 1000) / found.ms), found.unit) : 'less than a second';
}

/** A number with its noun: `1 attempt`, `2 attempts`. */
export function countOf(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? noun : plural}`;
}

/** ISO 8601 in UTC, to the second. A number that is no time is shown as it is. */
export function absoluteTime(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime())
    ? String(at)
    : date.toISOString().replace('T', ' ').replace(/\..*/, ' UTC');
}
