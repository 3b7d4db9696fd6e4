/** The shown rows in their order, each as it is now, and behind them those that are older than all. */
export function inPlace<T>(
  shown: readonly T[],
  latest: readonly T[],
  keyOf: (row: T) => string,
): readonly T[] {
  const byKey = new Map(latest.map((row) => [keyOf(row), row]));
  const known = new Set(shown.map(keyOf));
  const last = latest.findLastIndex((row) => known.has(keyOf(row)));
  return [...shown.map((row) => byKey.get(keyOf(row)) ?? row), ...(last < 0 ? [] : latest.slice(last + 1))];
}
