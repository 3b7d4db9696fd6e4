/**
 * Whether the end that an issuer set to something has come. What cannot be read as a date counts as an end
 * too: the issuer meant it to stop, and nobody knows when. No difference between clocks is allowed for: an
 * end may be set because a key was stolen.
 *
 * @param now epoch milliseconds.
 */
export function hasEnded(end: unknown, now: number): boolean {
  if (end === undefined || end === null) return false;
  const time = typeof end === 'string' ? Date.parse(end) : NaN;
  return Number.isNaN(time) || time <= now;
}
