import type { DeliveryStateOf } from '../outbox/delivery-states';
import { tokenIdHexOf } from '../registry/token-id-forms';
import type { DeliveryState } from './views';

/** The stored token id, in decimals or empty, as the page gets it. Null for events of the registry itself. */
export function shownTokenId(stored: string): string | null {
  return stored === '' ? null : tokenIdHexOf(BigInt(stored));
}

/** A delivery that waits after a failed attempt is shown as failed. */
export function shownState({ state, hasFailed }: DeliveryStateOf): DeliveryState {
  return state === 'waiting' && hasFailed ? 'failed' : state;
}
