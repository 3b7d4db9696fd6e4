import { useEffect, useRef, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { Field } from '../parts/field';
import { WhenLoaded } from '../parts/loading';
import { useLoaded } from '../requests/use-loaded';
import { countOf } from '../text/relative-time';
import { DeadLetters } from './dead-letters';
import { DeliveryTable } from './delivery-table';

const STATES: readonly { value: string; words: string }[] = [
  { value: '', words: 'Every state' },
  { value: 'waiting', words: 'Waiting' },
  { value: 'failed', words: 'Waiting after a failed attempt' },
  { value: 'dead', words: 'Dead letters' },
  { value: 'delivered', words: 'Delivered' },
];

const FIRST = 50;
/** The limit of the service. */
const MOST = 200;

/** Deliveries by state and subscription. */
export function DeliveriesPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { api, announce } = useConsole();
  const { state = '', subscription = '' } = query;
  const [limit, setLimit] = useState(FIRST);
  const loaded = useLoaded(`${state} ${subscription}`, (signal) =>
    api.deliveries(
      { ...(state && { state }), ...(subscription && { subscription }), limit: String(limit) },
      signal,
    ),
  );
  useEffect(() => loaded.reload(), [limit]);
  const count = loaded.data?.deliveries.length;
  useEffect(() => {
    if (count !== undefined) announce(`${countOf(count, 'delivery', 'deliveries')}.`);
  }, [state, subscription, count === undefined]);
  const known = useLoaded('subscriptions', (signal) => api.subscriptions(signal));
  const names = new Set([...(known.data ?? []).map(({ id }) => id), ...(subscription ? [subscription] : [])]);
  const isMoreAsked = useRef(false);
  const showMore = (): void => {
    isMoreAsked.current = true;
    setLimit(MOST);
  };
  const show = (changed: Readonly<Record<string, string>>): void => {
    setLimit(FIRST);
    location.hash = hrefOf('deliveries', { state, subscription, ...changed });
  };
  return (
    <>
      <h1>Deliveries</h1>
      <div class="filters">
        <Field label="State">
          {(control) => (
            <select
              {...control}
              value={state}
              onChange={(event) => show({ state: event.currentTarget.value })}
            >
              {STATES.map(({ value, words }) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Subscription">
          {(control) => (
            <select
              {...control}
              value={subscription}
              onChange={(event) => show({ subscription: event.currentTarget.value })}
            >
              <option value="">Every subscription</option>
              {[...names].map((id) => (
                <option key={id} value={id}>
                  {id}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      {state === 'dead' && subscription !== '' && <DeadLetters subscription={subscription} />}
      <WhenLoaded loaded={loaded}>
        {({ deliveries, hasMore }) => (
          <>
            {deliveries.length === 0 ? (
              <p class="note">There are no such deliveries.</p>
            ) : (
              <DeliveryTable
                key={`${state} ${subscription}`}
                deliveries={deliveries}
                subscriptions={known.data ?? []}
                isMoreAsked={isMoreAsked}
              />
            )}
            {hasMore &&
              (limit < MOST ? (
                <button type="button" onClick={showMore}>
                  Show more
                </button>
              ) : (
                <p class="dim">
                  The newest {MOST} are shown. Choose a state or a subscription to see others.
                </p>
              ))}
          </>
        )}
      </WhenLoaded>
    </>
  );
}
