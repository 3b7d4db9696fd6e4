import { useConsole } from '../frame/console-context';
import { ListTitle, WhenLoaded } from '../parts/feedback';
import { useLoaded } from '../requests/use-loaded';
import { CreateDialog } from './create-dialog';
import { SubscriptionCard } from './subscription-card';
import { EMPTY_SUBSCRIPTION } from './subscription-draft';

const PAUSES = 'They pause when your last key has ended. Log in again before that, or resume them later.';
const NONE = 'There are no subscriptions: no event is sent anywhere.';

/** The subscriptions, and a new one. */
export function SubscriptionsPage() {
  const { api, session, subscriptionDraft, setSubscriptionDraft } = useConsole();
  const loaded = useLoaded('subscriptions', (signal) => api.subscriptions(signal));
  return (
    <>
      <ListTitle noun="subscription" onCreate={() => setSubscriptionDraft(EMPTY_SUBSCRIPTION)} />
      {session.holder && <p class="note">{PAUSES}</p>}
      <WhenLoaded loaded={loaded}>
        {(subscriptions) =>
          subscriptions.length === 0 ? (
            <p class="note">{session.holder ? 'You have no subscriptions.' : NONE}</p>
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
      {subscriptionDraft && (
        <CreateDialog
          draft={subscriptionDraft}
          onClose={() => {
            setSubscriptionDraft(undefined);
            loaded.reload();
          }}
        />
      )}
    </>
  );
}
