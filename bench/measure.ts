/** How much is measured: `rounds` of `of(count)` things. */
export interface Size {
  rounds: number;
  of(this: void, count: number): number;
}

export const WHOLE: Size = { rounds: 5, of: (count) => count };

/** A twentieth, once: it shows that a program works, and nothing about speed. */
export const SMALL: Size = { rounds: 1, of: (count) => Math.ceil(count / 20) };

/** The figures of a case, by name and unit. */
export type Figures = Readonly<Record<string, number>>;

/**
 * Measures cases in turn, so that other load of the machine affects all of them, and prints the median of
 * each figure with its range, and its ratio to the same figure of the first case, the bare loop. The first
 * turn does not count: it compiles code and processes contexts.
 */
export async function compare(
  title: string,
  { rounds }: Pick<Size, 'rounds'>,
  cases: Readonly<Record<string, () => Promise<Figures>>>,
): Promise<void> {
  const all = Object.entries(cases).map(([name, measure]) => ({ name, measure, taken: [] as Figures[] }));
  for (let round = 0; round <= rounds; round++)
    // Each turn starts with another case, so that none always follows the same one.
    for (const { measure, taken } of [
      ...all.slice(round % all.length),
      ...all.slice(0, round % all.length),
    ]) {
      const figures = await measure();
      if (round > 0) taken.push(figures);
    }
  console.log(`\n${title}; medians of ${rounds} rounds in turn (least to most)`);
  const width = Math.max(...all.map(({ name }) => name.length));
  for (const figure of new Set(
    all.flatMap(({ taken }) => taken.flatMap((figures) => Object.keys(figures))),
  )) {
    console.log(`  ${figure}`);
    for (const { name, taken } of all) {
      const values = taken.flatMap((figures) => figures[figure] ?? []);
      if (values.length === 0) continue;
      const ratios = values.map((value, round) => value / (all[0]?.taken[round]?.[figure] ?? NaN));
      const isBare = taken === all[0]?.taken || ratios.some(Number.isNaN);
      console.log(`    ${name.padEnd(width)}  ${spread(values)}${isBare ? '' : `, ratio ${spread(ratios)}`}`);
    }
  }
}

function spread(values: readonly number[]): string {
  const [median, least, most] = [percentile(values, 0.5), Math.min(...values), Math.max(...values)];
  const text = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
  return `${text(median)} (${text(least)} to ${text(most)})`;
}

/** The value that this share of all values (0 to 1) does not exceed; NaN for an empty list. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN;
}

/** Milliseconds that the work takes. */
export async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Does the work `count` times, so many at once, and returns how many of them were done a second. */
export async function rateOf(
  count: number,
  atOnce: number,
  work: (index: number) => Promise<unknown>,
): Promise<number> {
  let next = 0;
  const workOnes = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  return (count / (await timeOf(() => Promise.all(Array.from({ length: atOnce }, workOnes))))) * 1_000;
}
