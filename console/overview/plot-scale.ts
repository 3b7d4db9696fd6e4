import type { Sample } from '../../service/console/views';

/** The size of a plot in its own units; the page stretches it. */
export const PLOT_WIDTH = 300;
export const PLOT_HEIGHT = 100;

/**
 * The drawing of the samples between two times. `line` and `area`, which is closed along the bottom, are each
 * the `d` of an SVG path, and empty without samples. `top` is the value at the top of the plot; `latest` and
 * `greatest` are null without samples.
 */
export function plotOf(samples: readonly Sample[], from: number, to: number) {
  const shown = samples
    .filter(([at, value]) => at >= from && at <= to && Number.isFinite(value))
    .sort(([one], [other]) => one - other);
  const values = shown.map(([, value]) => value);
  const top = roundedUp(Math.max(0, ...values));
  if (shown.length === 0) return { line: '', area: '', top, latest: null, greatest: null };
  const xOf = (at: number): string => (((at - from) / (to - from)) * PLOT_WIDTH).toFixed(1);
  const yOf = (value: number): string => ((1 - Math.max(0, value) / top) * PLOT_HEIGHT).toFixed(1);
  const points = shown.map(([at, value]) => `${xOf(at)} ${yOf(value)}`);
  const [first, last] = [shown[0], shown.at(-1)].map((sample) => xOf(sample?.[0] ?? from));
  const line = `M${points.join('L')}`;
  return {
    line,
    area: `${line}L${last} ${PLOT_HEIGHT}L${first} ${PLOT_HEIGHT}Z`,
    top,
    latest: values.at(-1) ?? null,
    greatest: Math.max(...values),
  };
}

/** The next of 4, 10, 20, 40, 100, 200, …: an axis that seldom changes, with a whole number at its middle. */
export function roundedUp(value: number): number {
  if (value <= 4) return 4;
  for (let power = 10; ; power *= 10)
    for (const step of [1, 2, 4]) if (step * power >= value) return step * power;
}
