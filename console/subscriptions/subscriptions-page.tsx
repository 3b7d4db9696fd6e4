import { useState } from 'preact/hooks';
import { useConsole, useMayChange } from '../frame/console-context';
import { ReaderNote, WhenLoaded } from '../parts/feedback';
import { useLoaded } from '../requests/use-loaded';
import { CreateDialog } from './create-dialog';
import { SecretNotice } from './secret-notice';
import { SubscriptionCard } from './subscription-card';

/** The subscriptions, and a new one. */
export function SubscriptionsPage() {
  const { api, createdSubscription, setCreatedSubscription } = useConsole();
  const mayChange = useMayChange();
  const loaded = useLoaded('subscriptions', (signal) => api.subscriptions(signal));
  const [isCreating, setCreating] = useState(false);
  return (
    <>
      <div class="title">
        <h1>Subscriptions</h1>
        {mayChange && (
          <button type="button" class="main" onClick={() => setCreating(true)}>
            Create a subscription
          </button>
        )}
      </div>
      {!mayChange && <ReaderNote what="changing subscriptions" />}
      {createdSubscription && (
        <SecretNotice subscription={createdSubscription} onClose={() => setCreatedSubscription(undefined)} />
      )}
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
          onClose={() => setCreating(false)}
          onCreated={(subscription) => {
            setCreating(false);
            setCreatedSubscription(subscription);
            loaded.reload();
          }}
        />
      )}
    </>
  );
}
