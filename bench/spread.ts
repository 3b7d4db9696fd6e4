import { median } from './median';

/** Median and 95th percentile, as text. */
export function spread(milliseconds: readonly number[]): string {
  const p95 = percentile(milliseconds, 0.95);
  return `median ${median(milliseconds).toFixed(1)} ms, p95 ${p95.toFixed(1)} ms (${milliseconds.length})`;
}

/** The value that this share of all values (0 to 1) does not exceed; NaN for an empty list. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}
