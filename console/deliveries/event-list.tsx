import type { EventView } from '../../service/console/views';
import { ShownText } from '../parts/shown-text';
import { countOf } from '../text/relative-time';
import { DeliveryState } from './delivery-state';
import { EventLink } from './event-link';
import { SubscriptionName } from './subscription-name';

/** Events of an operation, each with its deliveries. */
export function EventList({ events }: { events: readonly EventView[] }) {
  return (
    <div class="events">
      <h4>Events</h4>
      {events.length === 0 && <p class="dim">None is recorded yet.</p>}
      <ul class="plain">
        {events.map(({ id, type, deliveries }) => (
          <li key={id}>
            <EventLink id={id} type={type} />
            <div>
              {deliveries.length === 0 && <span class="dim">for no subscription</span>}
              {deliveries.map((delivery) => (
                <EventDelivery key={delivery.subscription} delivery={delivery} />
              ))}
            </div>
          </li>
        ))}
      </ul>
    </div>
  );
}

function EventDelivery({ delivery }: { delivery: EventView['deliveries'][number] }) {
  const { subscription, state, attempts, lastError } = delivery;
  return (
    <div>
      <DeliveryState state={state} />{' '}
      <span class="dim">
        <SubscriptionName id={subscription} />
        {attempts > 1 && `, ${countOf(attempts, 'attempt')}`}
      </span>
      {state !== 'delivered' && lastError !== null && (
        <div class="dim">
          <ShownText text={lastError} longest={120} />
        </div>
      )}
    </div>
  );
}
