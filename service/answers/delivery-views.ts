import type { Kysely } from 'kysely';
import { timeAt } from '../base/time';
import { traceOfEvent } from '../base/trace';
import type { Schema } from '../database/schema';
import { deliveryHeaders, type WebhookTarget } from '../delivery/attempt-delivery';
import { channelsOf, type Channel } from '../outbox/channels';
import { aboutOf, RETRACTED_TYPE } from '../events/cloud-event';
import { OPERATIONS } from '../events/conditions';
import type { Delivery, FoundDelivery, StoredEvent } from '../outbox/deliveries';
import { tokenIdHexOf } from '../registry/token-id-forms';
import type {
  DeliveryView,
  EndorsementView,
  EventDetails,
  EventNames,
  EventOfToken,
  Undelivered,
} from './views';

/** The webhook of a feed's channel now. Undefined: its events wait, or the feed does not run here. */
export type TargetOf = (feed: string, channel: Channel) => WebhookTarget | undefined;

/** Replaces a header's value that is secret. */
const SECRET = '•••';
/** A fresh signature of an old event would pass for a delivery. */
const SIGNATURE = /-signature$/i;

export function namesOf({ eventId: id, type, registry, tokenId }: StoredEvent): EventNames {
  if (tokenId === '' || registry === OPERATIONS)
    return { id, type, registry, tokenId: null, tokenIdHex: null };
  return { id, type, registry, tokenId, tokenIdHex: tokenIdHexOf(BigInt(tokenId)) };
}

export function deliveryView({ subscription, state, nextAttemptAt, attempts }: Delivery): DeliveryView {
  return {
    subscription,
    state,
    nextAttemptAt: nextAttemptAt === null ? null : timeAt(nextAttemptAt),
    attempts: attempts.map((one) => ({ ...one, attemptedAt: timeAt(one.attemptedAt) })),
  };
}

/** An undelivered event, with its last attempt. `attempts`: those that failed. */
export function undeliveredView({ event, delivery }: FoundDelivery): Undelivered {
  const { state, nextAttemptAt, attempts } = deliveryView(delivery);
  // The attempts of an event that is sent again are those of before.
  const last = state === 'waiting' ? undefined : attempts.at(-1);
  return {
    id: event.eventId,
    type: event.type,
    registry: event.registry,
    // Events of the registry itself carry token id 0.
    tokenId: event.tokenId || '0',
    state: state as Undelivered['state'],
    attempts: last?.attempt ?? 0,
    status: last?.status ?? null,
    error: last?.error ?? null,
    nextAttemptAt,
  };
}

/** An operation's transaction, as it is mined now. */
type Mined = Pick<EndorsementView, 'transactionHash' | 'blockNumber'>;

/**
 * Returns a function that finds the events of an operation, the oldest first. Retractions, and events of
 * orphaned blocks, belong to none.
 *
 * @param newestFirst the events of a token.
 * @param seesDeliveries whether the caller may see their deliveries.
 */
export function eventsByOperation(
  newestFirst: readonly StoredEvent[],
  seesDeliveries: boolean,
): (operation: Mined) => EventOfToken[] {
  const keyOf = ({ transactionHash, blockNumber }: Mined): string => `${transactionHash}/${blockNumber}`;
  const known = newestFirst
    .toReversed()
    .filter(({ type, isOrphaned }) => !isOrphaned && type !== RETRACTED_TYPE)
    .map(({ eventId: id, type, body, blockNumber, recordedAt: at, deliveries }) => {
      const shown = deliveries.map(deliveryView).map(({ subscription, state, attempts }) => ({
        subscription,
        state,
        attempts: attempts.length,
        error: attempts.at(-1)?.error ?? null,
        eachAttempt: attempts,
      }));
      const { transactionHash } = aboutOf(body);
      const key = keyOf({ transactionHash: transactionHash ?? '', blockNumber });
      return {
        key,
        event: { id, type, recordedAt: timeAt(at), ...(seesDeliveries && { deliveries: shown }) },
      };
    });
  return (operation: Mined) => {
    const wanted = keyOf(operation);
    return known.filter(({ key }) => key === wanted).map(({ event }) => event);
  };
}

export async function eventDetails(
  db: Kysely<Schema>,
  targetOf: TargetOf,
  event: StoredEvent,
  now: number,
): Promise<EventDetails> {
  const { eventId, body, deliveries } = event;
  const channels = await channelsOf(db, event.feed);
  const headersTo = (channel: Channel | undefined): Record<string, string> => {
    const target = channel && targetOf(event.feed, channel);
    if (target === undefined) return {};
    const secret = [...Object.keys(target.headers), 'authorization'];
    const trace = event.trace ?? traceOfEvent(eventId);
    const headers = deliveryHeaders(target, { body: Buffer.from(body), eventId, trace, now });
    for (const name of Object.keys(headers))
      if (secret.includes(name) || SIGNATURE.test(name)) headers[name] = SECRET;
    return headers;
  };
  return {
    ...namesOf(event),
    body,
    deliveries: deliveries.map((delivery) => ({
      ...deliveryView(delivery),
      headers: headersTo(channels.find(({ subscription }) => subscription === delivery.subscription)),
    })),
  };
}
