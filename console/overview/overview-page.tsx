import type { Overview, Problem } from '../../service/console/views';
import { useConsole } from '../frame/console-context';
import { ShownText } from '../parts/shown-text';
import { StateMark } from '../parts/state-mark';
import { useNow } from '../parts/when';
import { IssuingCards } from './issuing-cards';
import { PlotFigure } from './plot-figure';
import { RegistryCard } from './registry-card';
import { SubscriptionCards } from './subscription-cards';

const HALF_HOUR_MS = 30 * 60_000;
/** Plots move on so often. */
const STEP_MS = 10_000;

/** What is wrong, and how everything is. */
export function OverviewPage() {
  const { overview } = useConsole();
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
      <section aria-labelledby="problems" aria-live="polite">
        <h2 id="problems" class="unseen">
          Problems
        </h2>
        {problems.length === 0 ? (
          <p class="well">
            <StateMark tone="good" word="All is well." />
          </p>
        ) : (
          <ul class="plain problems">
            {problems.map((problem) => (
              <ProblemItem key={problem.message} problem={problem} />
            ))}
          </ul>
        )}
      </section>
      <section aria-labelledby="registries">
        <h2 id="registries">Registries</h2>
        {registries.length === 0 && <p class="dim">No registry is followed.</p>}
        <div class="cards">
          {registries.map((registry) => (
            <RegistryCard key={`${registry.chainId}:${registry.registry}`} registry={registry} />
          ))}
        </div>
      </section>
      <section aria-labelledby="work">
        <h2 id="work">Issuing and delivering</h2>
        <div class="cards">
          <IssuingCards />
          <SubscriptionCards />
        </div>
      </section>
      <section aria-labelledby="half-hour">
        <h2 id="half-hour">The last half hour</h2>
        <Plots plots={plots} />
      </section>
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
          <ShownText text={remedy} /> {href?.startsWith('#/') && <a href={href}>Show more</a>}
        </p>
      </div>
    </li>
  );
}

/** An overview comes only when something changed, but time goes on. */
function Plots({ plots: { lag, deliveriesPerMinute } }: Pick<Overview, 'plots'>) {
  const to = Math.ceil(useNow() / STEP_MS) * STEP_MS;
  const from = to - HALF_HOUR_MS;
  return (
    <div class="cards plots">
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
    </div>
  );
}
