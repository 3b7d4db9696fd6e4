import { median } from './median';

/** Median and 95th percentile, as text. */
export function spread(milliseconds: readonly number[]): string {
  const sorted = [...milliseconds].sort((a, b) => a - b);
  const p95 = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))] ?? NaN;
  return `median ${median(milliseconds).toFixed(1)} ms, p95 ${p95.toFixed(1)} ms (${milliseconds.length})`;
}
