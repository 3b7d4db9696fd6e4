/** The shown rows as they are now, and behind them those that were older than all of them. */
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
