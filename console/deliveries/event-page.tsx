import { useId } from 'preact/hooks';
import type { EventDetails } from '../../service/answers/views';
import { useConsole, useMayChange } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { ReaderNote, WhenLoaded } from '../parts/feedback';
import { Table, type Column } from '../parts/table';
import { FactsList, Hex, RegistryName, ShownText, TokenLink, When } from '../parts/values';
import { useLoaded } from '../requests/use-loaded';
import {
  DeliveryState,
  NextAttempt,
  Redeliver,
  shortType,
  useSubscriptionStates,
  type SubscriptionStates,
} from './delivery-parts';

/** An event: its body, and every attempt of each subscription. */
export function EventPage({ id }: { id: string }) {
  const { api } = useConsole();
  const mayChange = useMayChange();
  const subscriptions = useSubscriptionStates();
  const loaded = useLoaded(id, (signal) => api.event(id, signal));
  return (
    <>
      <div>
        <a href={hrefOf('deliveries')}>Deliveries</a>
        <h1>{loaded.data ? `Event ${shortType(loaded.data.type)}` : 'Event'}</h1>
      </div>
      <WhenLoaded loaded={loaded}>
        {(event) => (
          <>
            <section class="card" aria-labelledby="event">
              <h2 id="event">Event</h2>
              <FactsList
                rows={[
                  ['Id', <Hex value={event.id} what="event id" />],
                  [
                    'Token',
                    event.tokenIdHex === null ? (
                      'none: an event of no token'
                    ) : (
                      <TokenLink id={event.tokenIdHex} registry={event.registry} />
                    ),
                  ],
                  ['Registry', <RegistryName registry={event.registry} />],
                ]}
              />
              <h3>Body</h3>
              <ShownText block="Body" text={pretty(event.body)} longest={20_000} />
            </section>
            {!mayChange && <ReaderNote what="delivering again" />}
            {event.deliveries.length === 0 && <p class="note">The event is for no subscription.</p>}
            {event.deliveries.map((delivery) => (
              <EventDelivery
                key={delivery.subscription}
                eventId={event.id}
                delivery={delivery}
                subscriptions={subscriptions}
                onChange={loaded.reload}
              />
            ))}
          </>
        )}
      </WhenLoaded>
    </>
  );
}

/** JSON in several lines; another text as it is. */
function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

type Delivery = EventDetails['deliveries'][number];
type Attempt = Delivery['attempts'][number];

const COLUMNS: readonly Column<Attempt>[] = [
  { head: 'Attempt', cell: ({ attempt }) => attempt },
  { head: 'Time', cell: ({ attemptedAt }) => <When at={Date.parse(attemptedAt)} /> },
  { head: 'Status', cell: ({ status }) => status ?? <span class="dim">no answer</span>, isNumber: true },
  { head: 'Milliseconds', cell: ({ milliseconds }) => milliseconds.toLocaleString('en'), isNumber: true },
  {
    head: 'Error',
    cell: ({ error }) => (error === null ? <span class="dim">none</span> : <ShownText text={error} />),
  },
];

interface Props {
  eventId: string;
  delivery: Delivery;
  subscriptions: SubscriptionStates;
  onChange: () => void;
}

/** States in which an event can be delivered at once. */
const REDELIVER_WORDS: Partial<Record<Delivery['state'], string>> = {
  failed: 'Deliver now',
  dead: 'Deliver again',
  delivered: 'Deliver again',
};

/** An event's delivery to one subscription. */
function EventDelivery({ eventId, delivery, subscriptions, onChange }: Props) {
  const { subscription, state, headers, attempts } = delivery;
  const heading = useId();
  return (
    <section class="card" aria-labelledby={heading}>
      <header>
        <h2 id={heading}>
          Subscription <span class="wrap">{subscription}</span>
        </h2>
        <span>
          <DeliveryState state={state} />{' '}
          <span class="dim">
            <NextAttempt delivery={delivery} subscriptions={subscriptions} />
          </span>
        </span>
      </header>
      <Redeliver
        subscription={subscription}
        body={{ event: eventId }}
        label={REDELIVER_WORDS[state]}
        none="the subscription does not want this event now, or the event was removed because it was old"
        onDone={onChange}
      />
      <h3>Attempts</h3>
      <Table
        caption={`Attempts for the subscription ${subscription}`}
        columns={COLUMNS}
        rows={attempts}
        keyOf={({ attempt, attemptedAt }) => `${attempt} ${attemptedAt}`}
        empty="None yet."
      />
      <details>
        <summary>Headers as they would be sent now</summary>
        <ShownText
          block="Headers"
          text={Object.entries(headers)
            .map(([name, value]) => `${name}: ${value}`)
            .join('\n')}
        />
      </details>
    </section>
  );
}
