/** Digits behind the point that matter to somebody who looks at a balance. */
const DIGITS = 4;

/** A decimal amount, cut behind the point. An amount that would seem to be nothing stays whole. */
export function shortAmount(amount: string): string {
  const short = new RegExp(`^\\d+(\\.\\d{1,${DIGITS}})?`).exec(amount)?.[0] ?? amount;
  return Number(short) === 0 ? amount : short;
}
