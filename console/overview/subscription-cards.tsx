import type { RegistryView } from '../../service/console/views';
import { useConsole } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { FactsList } from '../parts/facts-list';
import { countOf } from '../text/relative-time';
import { Figure } from './figure';

/** Deliveries of all registries, and subscriptions by state. */
export function SubscriptionCards() {
  const { overview } = useConsole();
  if (!overview) return null;
  const { registries, subscriptions } = overview;
  const dead = sumOf(registries, 'deadLetters');
  const unknown = registries.filter(({ waiting }) => waiting === null).length;
  return (
    <>
      <article class="card" aria-label="Deliveries">
        <h2>Deliveries</h2>
        <Figure
          value={sumOf(registries, 'waiting')}
          noun="event"
          after="waiting"
          href={hrefOf('deliveries', { state: 'waiting' })}
        />
        <FactsList
          rows={[
            [
              'Dead letters',
              <a href={hrefOf('deliveries', { state: 'dead' })}>
                {dead?.toLocaleString('en') ?? 'not known now'}
              </a>,
            ],
            ['Not known now', unknown === 0 ? undefined : countOf(unknown, 'registry', 'registries')],
          ]}
        />
      </article>
      <article class="card" aria-label="Subscriptions">
        <h2>Subscriptions</h2>
        <Figure
          value={subscriptions.active}
          noun="subscription"
          after="active"
          href={hrefOf('subscriptions')}
        />
        <FactsList
          rows={[
            ['Paused', subscriptions.paused],
            ['Gone (410)', subscriptions.gone],
          ]}
        />
      </article>
    </>
  );
}

/** The sum over the registries whose figure is known. Null if none is. */
function sumOf(registries: readonly RegistryView[], member: 'waiting' | 'deadLetters'): number | null {
  const known = registries.flatMap((registry) => registry[member] ?? []);
  if (known.length === 0 && registries.length > 0) return null;
  return known.reduce((sum, value) => sum + value, 0);
}
