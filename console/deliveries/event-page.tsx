import { useConsole, useMayChange } from '../frame/console-context';
import { hrefOf } from '../frame/route';
import { FactsList } from '../parts/facts-list';
import { Hex } from '../parts/hex';
import { WhenLoaded } from '../parts/loading';
import { ReaderNote } from '../parts/notice';
import { RegistryName } from '../parts/registry-name';
import { ShownText } from '../parts/shown-text';
import { useLoaded } from '../requests/use-loaded';
import { EventDelivery } from './event-delivery';

/** An event: its body, and every attempt of each subscription. */
export function EventPage({ id }: { id: string }) {
  const { api } = useConsole();
  const mayChange = useMayChange();
  const known = useLoaded('subscriptions', (signal) => api.subscriptions(signal));
  const states = new Map(known.data?.map((one) => [one.id, one.config.state]));
  const loaded = useLoaded(id, (signal) => api.event(id, signal));
  return (
    <>
      <div>
        <a href={hrefOf('deliveries')}>Deliveries</a>
        <h1>{loaded.data ? `Event ${loaded.data.type}` : 'Event'}</h1>
      </div>
      <WhenLoaded loaded={loaded}>
        {(event) => (
          <>
            <section class="card" aria-labelledby="event">
              <h2 id="event">Event</h2>
              <FactsList
                rows={[
                  ['Id', <Hex value={event.eventId} what="event id" />],
                  [
                    'Token',
                    event.tokenId === null ? (
                      'none: an event of the registry'
                    ) : (
                      <Hex
                        value={event.tokenId}
                        what="token id"
                        href={hrefOf('token', { id: event.tokenId, registry: event.registry })}
                      />
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
                eventId={event.eventId}
                delivery={delivery}
                subscriptionState={states.get(delivery.subscription)}
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
