/** Shortens long hex in the middle: `0x7099…79C8`. Shorter texts stay whole. */
export function shortened(value: string, { start = 6, end = 4 } = {}): string {
  return value.length <= start + end + 2 ? value : `${value.slice(0, start)}…${value.slice(-end)}`;
}
