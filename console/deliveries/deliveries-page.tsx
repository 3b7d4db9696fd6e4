import { useConsole } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { goTo } from '../frame/use-route';
import { Field } from '../parts/field';
import { useLoaded } from '../requests/use-loaded';
import { DeadLetters } from './dead-letters';
import { DeliveryList } from './delivery-list';

const STATES: readonly { value: string; words: string }[] = [
  { value: '', words: 'Every state' },
  { value: 'waiting', words: 'Waiting' },
  { value: 'failed', words: 'Waiting after a failed attempt' },
  { value: 'dead', words: 'Dead letters' },
  { value: 'delivered', words: 'Delivered' },
];

/** Deliveries by state and subscription. */
export function DeliveriesPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { api } = useConsole();
  const { state = '', subscription = '' } = query;
  const known = useLoaded('subscriptions', (signal) => api.subscriptions(signal));
  const names = new Set([...(known.data ?? []).map(({ id }) => id), ...(subscription ? [subscription] : [])]);
  const show = (changed: Readonly<Record<string, string>>): void => {
    goTo(hrefOf('deliveries', { state, subscription, ...changed }));
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
      {state === 'dead' && subscription !== '' && (
        <DeadLetters key={subscription} subscription={subscription} />
      )}
      <DeliveryList
        key={`${state} ${subscription}`}
        state={state}
        subscription={subscription}
        subscriptions={known.data ?? []}
      />
    </>
  );
}
