import { useState } from 'preact/hooks';
import { useConsole, useMayChange } from '../frame/console-context';
import { Notice, ReaderNote, WhenLoaded } from '../parts/feedback';
import { CopyButton } from '../parts/values';
import type { Subscription } from '../requests/api';
import { useLoaded } from '../requests/use-loaded';
import { CreateDialog } from './create-dialog';
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

interface SecretProps {
  subscription: Subscription;
  onClose: () => void;
}

/** A new subscription, and its secret, which no later answer shows. */
function SecretNotice({ subscription: { id, config }, onClose }: SecretProps) {
  return (
    <Notice tone="good" word="Created" spoken="The subscription is created.">
      <p>
        Subscription <span class="wrap">{id}</span>
      </p>
      {config.secret !== undefined && (
        <>
          <p>
            <b>The secret of Standard Webhooks is shown once.</b> Copy it to the sink now.
          </p>
          <p class="hex">
            <code class="wrap">{config.secret}</code>
            <CopyButton value={config.secret} what="secret" />
          </p>
        </>
      )}
      <button type="button" onClick={onClose}>
        {config.secret === undefined ? 'Close' : 'I have copied it'}
      </button>
    </Notice>
  );
}
