import { useEffect, useState } from 'preact/hooks';
import type { DeliveryView } from '../../service/console/views';
import { useConsole } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { Field } from '../parts/field';
import { WhenLoaded } from '../parts/loading';
import { Table, type Column } from '../parts/table';
import { Hex } from '../parts/hex';
import { ShownText } from '../parts/shown-text';
import { When } from '../parts/when';
import { useLoaded } from '../requests/use-loaded';
import { DeadLetters } from './dead-letters';
import { DeliveryState } from './delivery-state';
import { EventLink } from './event-link';
import { SubscriptionName } from './subscription-name';

const STATES: readonly { value: string; words: string }[] = [
  { value: '', words: 'Every state' },
  { value: 'waiting', words: 'Waiting, also after a failed attempt' },
  { value: 'failed', words: 'Failed, tried again' },
  { value: 'dead', words: 'Dead letters' },
  { value: 'delivered', words: 'Delivered' },
];

const FIRST = 50;
/** The limit of the service. */
const MOST = 200;

const COLUMNS: readonly Column<DeliveryView>[] = [
  { head: 'Event', cell: ({ eventId, type }) => <EventLink id={eventId} type={type} /> },
  { head: 'State', cell: ({ state }) => <DeliveryState state={state} /> },
  {
    head: 'Token',
    cell: ({ tokenId, registry }) =>
      tokenId === null ? (
        <span class="dim">none</span>
      ) : (
        <Hex value={tokenId} what="token id" href={hrefOf('token', { id: tokenId, registry })} />
      ),
  },
  { head: 'Subscription', cell: ({ subscription }) => <SubscriptionName id={subscription} /> },
  {
    head: 'Attempts',
    cell: ({ attempts, lastAttemptAt, nextAttemptAt }) => (
      <div>
        {attempts}
        {lastAttemptAt !== null && (
          <span class="dim">
            , <When at={lastAttemptAt} isPast />
          </span>
        )}
        {nextAttemptAt !== null && (
          <div class="dim">
            next <When at={nextAttemptAt} />
          </div>
        )}
      </div>
    ),
  },
  { head: 'Last answer', cell: (delivery) => <LastAnswer delivery={delivery} /> },
];

/** Deliveries by state and subscription. */
export function DeliveriesPage({ query }: { query: Readonly<Record<string, string>> }) {
  const { api } = useConsole();
  const { state = '', subscription = '' } = query;
  const [limit, setLimit] = useState(FIRST);
  const loaded = useLoaded(`${state} ${subscription}`, (signal) =>
    api.deliveries(
      { ...(state && { state }), ...(subscription && { subscription }), limit: String(limit) },
      signal,
    ),
  );
  useEffect(() => loaded.reload(), [limit]);
  const known = useLoaded('subscriptions', (signal) => api.subscriptions(signal));
  const names = new Set([...(known.data ?? []).map(({ id }) => id), ...(subscription ? [subscription] : [])]);
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
              <Table
                caption="Deliveries, the newest first"
                columns={COLUMNS}
                rows={deliveries}
                keyOf={({ eventId, subscription: channel }) => `${eventId} ${channel}`}
              />
            )}
            {hasMore &&
              (limit < MOST ? (
                <button type="button" onClick={() => setLimit(MOST)}>
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

function LastAnswer({ delivery: { status, error } }: { delivery: DeliveryView }) {
  if (status === null && error === null) return <span class="dim">—</span>;
  return <span>{error === null ? status : <ShownText text={error} longest={120} />}</span>;
}
