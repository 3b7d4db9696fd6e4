import type { Overview, Problem } from '../../service/console/views';
import { useConsole } from '../frame/console-context';
import { PAGES, routeOf } from '../frame/route';
import { ShownText } from '../parts/shown-text';
import { StateMark } from '../parts/state-mark';
import { useNow } from '../parts/when';
import { countOf } from '../text/relative-time';
import { IssuingCards } from './issuing-cards';
import { PlotFigure } from './plot-figure';
import { RegistryCard } from './registry-card';
import { SubscriptionCards } from './subscription-cards';

const HALF_HOUR_MS = 30 * 60_000;
/** Plots move on so often. */
const STEP_MS = 10_000;

/** The problems, and the figures of every part. */
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
        <SubscriptionCards />
        <IssuingCards />
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

/** An overview comes only when something changed, but time goes on. */
function Plots({ plots: { lag, deliveriesPerMinute } }: Pick<Overview, 'plots'>) {
  const to = Math.ceil(useNow() / STEP_MS) * STEP_MS;
  const from = to - HALF_HOUR_MS;
  return (
    <section class="cards plots" aria-label="The last half hour">
      <PlotFigure
        title="Lag of the registry that is furthest behind"
        noun="block"
        samples={lag}
        from={from}
        to={to}
      />
      <PlotFigure
        title="Deliveries a minute"
        noun="delivery"
        plural="deliveries"
        samples={deliveriesPerMinute}
        from={from}
        to={to}
      />
    </section>
  );
}
