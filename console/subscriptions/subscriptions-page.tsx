import { useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { ListTitle, WhenLoaded } from '../parts/feedback';
import { useLoaded } from '../requests/use-loaded';
import { CreateDialog } from './create-dialog';
import { SubscriptionCard } from './subscription-card';

/** The subscriptions, and a new one. */
export function SubscriptionsPage() {
  const { api } = useConsole();
  const loaded = useLoaded('subscriptions', (signal) => api.subscriptions(signal));
  const [isCreating, setCreating] = useState(false);
  return (
    <>
      <ListTitle noun="subscription" onCreate={() => setCreating(true)} />
      <WhenLoaded loaded={loaded}>
        {(subscriptions) =>
          subscriptions.length === 0 ? (
            <p class="note">There are no subscriptions: no event is sent anywhere.</p>
          ) : (
            <ul class="plain stack">
              {subscriptions.map((subscription) => (
                <li key={subscription.id}>
                  <SubscriptionCard subscription={subscription} onChange={loaded.reload} />
                </li>
              ))}
            </ul>
          )
        }
      </WhenLoaded>
      {isCreating && (
        <CreateDialog
          onClose={() => {
            setCreating(false);
            loaded.reload();
          }}
        />
      )}
    </>
  );
}
