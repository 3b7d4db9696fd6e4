import { median } from './median';

/** Median and 95th percentile, as text. */
export function spread(milliseconds: readonly number[]): string {
  const p95 = percentile(milliseconds, 0.95);
  return `median ${median(milliseconds).toFixed(1)} ms, p95 ${p95.toFixed(1)} ms (${milliseconds.length})`;
}

/** The value that this part of all (0 to 1) does not exceed; NaN of nothing. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}
