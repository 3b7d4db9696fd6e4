const MONTHS_VALID = 3;

/**
 * The end of a credential's validity: three calendar months after `from`, in UTC, at the same time of day. If
 * that month lacks the day, its last day is used (30 November → 28 or 29 February; docs/specification.md
 * 3.5).
 */
export function validUntilOf(from: Date): Date {
  const until = new Date(from);
  until.setUTCMonth(from.getUTCMonth() + MONTHS_VALID);
  // setUTCMonth carries a missing day over into the next month: day 0 of that month is the last day of the
  // wanted one.
  if (until.getUTCDate() !== from.getUTCDate()) until.setUTCDate(0);
  return until;
}
