import { useEffect, useRef, useState } from 'preact/hooks';
import { useConsole } from '../frame/console-context';
import { WhenLoaded } from '../parts/loading';
import type { Subscription } from '../requests/api';
import { useLoaded } from '../requests/use-loaded';
import { countOf } from '../text/relative-time';
import { DeliveryTable } from './delivery-table';

const FIRST = 50;
/** The limit of the service. */
const MOST = 200;

interface Props {
  /** Empty: every state. */
  state: string;
  /** Empty: every subscription. */
  subscription: string;
  subscriptions: readonly Subscription[];
}

/** The deliveries of a selection. Another selection is another list. */
export function DeliveryList({ state, subscription, subscriptions }: Props) {
  const { api, announce } = useConsole();
  const [limit, setLimit] = useState(FIRST);
  const selection = { ...(state && { state }), ...(subscription && { subscription }) };
  const loaded = useLoaded(`${state} ${subscription}`, async (signal) => ({
    ...(await api.deliveries({ ...selection, limit: String(limit) }, signal)),
    limit,
  }));
  const isMoreAsked = useRef(false);
  useEffect(() => {
    if (limit === FIRST) return;
    isMoreAsked.current = true;
    loaded.reload();
  }, [limit]);
  const count = loaded.data?.deliveries.length;
  useEffect(() => {
    if (count !== undefined) announce(`${countOf(count, 'delivery', 'deliveries')}.`);
  }, [count === undefined]);
  return (
    <WhenLoaded loaded={loaded}>
      {({ deliveries, hasMore, limit: shown }) => (
        <>
          <DeliveryTable deliveries={deliveries} subscriptions={subscriptions} isMoreAsked={isMoreAsked} />
          {hasMore &&
            (shown < MOST ? (
              <button type="button" aria-disabled={limit === MOST} onClick={() => setLimit(MOST)}>
                Show more
              </button>
            ) : (
              <p class="dim">The newest {MOST} are shown. Choose a state or a subscription to see others.</p>
            ))}
        </>
      )}
    </WhenLoaded>
  );
}
