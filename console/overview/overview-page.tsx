import { useId } from 'preact/hooks';
import type { Overview, Sample } from '../../service/console/views';
import type { Problem } from '../../service/observability/problems';
import { useConsole } from '../frame/console-context';
import { PAGES, routeOf } from '../frame/route';
import { ShownText, StateMark, useNow } from '../parts/values';
import { countOf } from '../text/words';
import { IssuingCards, RegistryCard, SubscriptionCards } from './cards';
import { PLOT_HEIGHT, PLOT_WIDTH, plotOf } from './plot-scale';

const HALF_HOUR_MS = 30 * 60_000;
/** The plots move on once in this time. */
const STEP_MS = 10_000;

export function OverviewPage() {
  const { overview, isLost } = useConsole();
  if (!overview)
    return (
      <>
        <h1>Overview</h1>
        <p class="dim loading">Reading …</p>
      </>
    );
  const { problems, registries, plots } = overview;
  return (
    <>
      <h1>Overview</h1>
      <section aria-labelledby="problems">
        <h2 id="problems" class="unseen">
          Problems
        </h2>
        <p class="unseen" role="status">
          {countOf(problems.length, 'problem')}
        </p>
        {problems.length === 0 ? (
          <p class="well">
            {isLost ? (
              <StateMark tone="wait" word="Not known: the service does not answer." shape="question" />
            ) : (
              <StateMark tone="good" word="All is well." />
            )}
          </p>
        ) : (
          <ul class="plain problems">
            {problems.map((problem) => (
              <ProblemItem key={problem.message} problem={problem} />
            ))}
          </ul>
        )}
      </section>
      {registries.length === 0 && <p class="note">No registry is followed: no event is read or sent.</p>}
      <section class="cards" aria-label="Figures">
        {registries.map((registry) => (
          <RegistryCard key={`${registry.chainId}:${registry.registry}`} registry={registry} />
        ))}
        <SubscriptionCards overview={overview} />
        <IssuingCards issuing={overview.issuing} />
      </section>
      <Plots plots={plots} />
    </>
  );
}

function ProblemItem({ problem: { severity, message, remedy, href } }: { problem: Problem }) {
  const isError = severity === 'error';
  return (
    <li class={`notice ${isError ? 'bad' : 'wait'}`}>
      <StateMark tone={isError ? 'bad' : 'wait'} word={isError ? 'Error' : 'Warning'} />
      <div>
        <p>
          <b>
            <ShownText text={message} />
          </b>
        </p>
        <p>
          <ShownText text={remedy} /> {href !== undefined && <a href={href}>Open {pageOf(href)}</a>}
        </p>
      </div>
    </li>
  );
}

function pageOf(href: string): string | undefined {
  return PAGES.find(({ name }) => name === routeOf(href).page)?.title;
}

/** The plots end now, and not when the last overview came: it comes only when something changed. */
function Plots({ plots: { lag, deliveriesPerMinute } }: Pick<Overview, 'plots'>) {
  const to = Math.ceil(useNow() / STEP_MS) * STEP_MS;
  return (
    <section class="cards plots" aria-label="The last half hour">
      <PlotFigure title="Lag of the registry that is furthest behind" noun="block" samples={lag} to={to} />
      <PlotFigure
        title="Deliveries a minute"
        noun="delivery"
        plural="deliveries"
        samples={deliveriesPerMinute}
        to={to}
      />
    </section>
  );
}

interface PlotProps {
  title: string;
  noun: string;
  plural?: string;
  samples: readonly Sample[];
  to: number;
}

/** A plot of the last half hour. Its labels are no part of the drawing, which is stretched. */
function PlotFigure({ title, noun, plural, samples, to }: PlotProps) {
  const titleId = useId();
  const { line, area, top, latest, greatest } = plotOf(samples, to - HALF_HOUR_MS, to);
  const words = (value: number) => countOf(value, noun, plural);
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
