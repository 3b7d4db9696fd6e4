/**
 * Whether an end that the issuer set has passed. A value that is not a date counts as passed: the issuer
 * meant an end, at an unknown time. No clock skew is tolerated: the end may be due to a stolen key.
 *
 * @param now epoch milliseconds.
 */
export function hasEnded(end: unknown, now: number): boolean {
  if (end === undefined || end === null) return false;
  const time = typeof end === 'string' ? Date.parse(end) : NaN;
  return Number.isNaN(time) || time <= now;
}
