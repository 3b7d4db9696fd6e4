const TIME_UNITS = [
  { unit: 'day', ms: 86_400_000 },
  { unit: 'hour', ms: 3_600_000 },
  { unit: 'minute', ms: 60_000 },
  { unit: 'second', ms: 1000 },
] as const;

/** A time as seen from `now`: `in 5 seconds`, `2 minutes ago`. Clocks differ, so a second is nothing. */
export function relativeTime(at: number, now: number): string {
  const distance = Math.abs(at - now);
  const found = TIME_UNITS.find(({ ms }) => distance >= ms);
  if (!found || distance < 2000) return 'now';
  const words = countOf(Math.floor(distance / found.ms), found.unit);
  return at > now ? `in ${words}` : `${words} ago`;
}

/** A duration in its largest unit: `45 seconds`, `3 hours`. */
export function durationOf(seconds: number): string {
  const found = TIME_UNITS.find(({ ms }) => seconds * 1000 >= ms);
  return found ? countOf(Math.floor((seconds * 1000) / found.ms), found.unit) : 'less than a second';
}

/** A duration for comparing: `1,234 ms`, `61.5 s`; from an hour on, in its largest unit. */
export function millisecondsOf(ms: number): string {
  const size = Math.abs(ms);
  const sign = ms < 0 ? '−' : '';
  if (size < 10_000) return `${sign}${size.toLocaleString('en')} ms`;
  return `${sign}${size < 3_600_000 ? `${(size / 1000).toFixed(1)} s` : durationOf(size / 1000)}`;
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

/** A decimal amount with at most four decimals. An amount that would seem to be nothing stays whole. */
export function shortAmount(amount: string): string {
  const short = /^\d+(\.\d{1,4})?/.exec(amount)?.[0] ?? amount;
  return Number(short) === 0 ? amount : short;
}

const BYTE_UNITS = ['bytes', 'kB', 'MB', 'GB'];

/** A number of bytes for people, in units of 1024: `340 bytes`, `1.2 MB`. */
export function sizeOf(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${BYTE_UNITS[unit] ?? ''}`;
}

/** Shortens long hex in the middle: `0x7099…79C8`. Shorter texts stay whole. */
export function shortened(value: string, { start = 6, end = 4 } = {}): string {
  return value.length <= start + end + 2 ? value : `${value.slice(0, start)}…${value.slice(-end)}`;
}

/** Longest name without its ending. File systems allow 255 bytes, and a letter may take four. */
const LONGEST_NAME = 60;

/** Makes a stranger's text the name of a file: without folders, leading dots and special characters. */
export function jsonFileName(text: string): string {
  const safe = text
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}._-]+/gu, '_')
    .replace(/^[._-]+/, '');
  return `${[...safe].slice(0, LONGEST_NAME).join('') || 'document'}.json`;
}

/** Names the accounts of a local node as `tdoc operate` does: `account 1`. */
export function accountName(address: string, accounts: readonly string[]): string | undefined {
  const index = accounts.findIndex((account) => account.toLowerCase() === address.toLowerCase());
  return index < 0 ? undefined : `account ${index}`;
}

/** Shortens the addresses and token ids in a text. */
export function withShortHex(text: string): string {
  return text.replace(/(0x)?[0-9a-fA-F]{40,}/g, (hex) => shortened(hex));
}

/** The entries of a field of several lines. */
export function linesOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((line) => line !== '');
}

export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
