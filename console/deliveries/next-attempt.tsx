import type { DeliveryState } from '../../service/outbox/deliveries';
import { When } from '../parts/when';
import type { Subscription } from '../requests/api';

interface Props {
  delivery: { state: DeliveryState; nextAttemptAt: number | null };
  /** The state of its subscription; undefined if it is not known. */
  subscription: Subscription['config']['state'] | undefined;
}

/** The time, or the condition, of the next attempt of a delivery that waits. */
export function NextAttempt({ delivery: { state, nextAttemptAt }, subscription = 'active' }: Props) {
  if (state !== 'waiting' && state !== 'failed') return null;
  if (subscription !== 'active') return <>next when the subscription is resumed</>;
  if (nextAttemptAt === null) return <>waits for an earlier event of its token</>;
  return (
    <>
      next <When at={nextAttemptAt} />
    </>
  );
}
