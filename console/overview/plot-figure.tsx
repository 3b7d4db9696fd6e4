import { useId } from 'preact/hooks';
import type { Sample } from '../../service/console/views';
import { countOf } from '../text/relative-time';
import { PLOT_HEIGHT, PLOT_WIDTH, plotOf } from './plot-scale';

interface Props {
  title: string;
  noun: string;
  plural?: string;
  samples: readonly Sample[];
  from: number;
  to: number;
}

/** A plot of the last half hour. Its labels are no part of the drawing, which is stretched. */
export function PlotFigure({ title, noun, plural, samples, from, to }: Props) {
  const titleId = useId();
  const { line, area, top, latest, greatest } = plotOf(samples, from, to);
  const words = (value: number): string => countOf(value, noun, plural);
  const summary =
    latest === null || greatest === null
      ? 'Nothing was measured yet.'
      : `Now ${words(latest)}, at most ${words(greatest)}.`;
  return (
    <figure class="card plot" aria-labelledby={titleId}>
      <figcaption>
        <h2 id={titleId}>{title}</h2>
        <p class="dim">{summary}</p>
      </figcaption>
      <div class="axes">
        <div class="y" aria-hidden="true">
          <span>{top.toLocaleString('en')}</span>
          <span>{(top / 2).toLocaleString('en')}</span>
          <span>0</span>
        </div>
        <svg
          role="img"
          aria-label={`${title}, from half an hour ago until now. ${summary}`}
          viewBox={`0 0 ${PLOT_WIDTH} ${PLOT_HEIGHT}`}
          preserveAspectRatio="none"
        >
          <path class="grid" d={`M0 0H${PLOT_WIDTH}M0 50H${PLOT_WIDTH}M0 100H${PLOT_WIDTH}`} />
          <path class="area" d={area} />
          <path class="line" d={line} />
        </svg>
        <div class="x" aria-hidden="true">
          <span>30 min ago</span>
          <span>15 min ago</span>
          <span>now</span>
        </div>
      </div>
    </figure>
  );
}
