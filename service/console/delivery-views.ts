import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import type { ChannelTarget } from '../delivery/feed-delivery';
import { deliveryHeaders } from '../delivery/post';
import { shortType } from '../events/event-types';
import { channelsOf, type Channel } from '../outbox/channels';
import {
  deliveriesOfEvent,
  listDeliveries,
  type DeliveredEvent,
  type StoredEvent,
} from '../outbox/deliveries';
import { tokenIdHexOf } from '../registry/token-id-forms';
import type { DeliveriesAsked } from './console';
import type { DeliveryList, EventDetails, EventView } from './views';

/** The webhook of a feed's channel now. Undefined: its events wait, or the feed does not run here. */
export type TargetOf = (feed: string, channel: Channel) => ChannelTarget | undefined;

/** Replaces a header's value that is secret. */
const SECRET = '•••';
/** A fresh signature of an old event would pass for a delivery. */
const SIGNATURE = /-signature$/i;

/** An event as the page names it. The token id is null for events of the registry itself. */
function named({ eventId, type, registry, tokenId }: StoredEvent) {
  const shown = tokenId === '' ? null : tokenIdHexOf(BigInt(tokenId));
  return { eventId, type: shortType(type), registry, tokenId: shown };
}

/** Deliveries of all registries, those of the newest events first. Those that failed are waiting, too. */
export async function deliveryList(
  db: Kysely<Schema>,
  { state, subscription, limit }: DeliveriesAsked,
): Promise<DeliveryList> {
  const states = state && ([state, ...(state === 'waiting' ? (['failed'] as const) : [])] as const);
  const { deliveries, next } = await listDeliveries(db, { states, subscription, limit });
  return {
    deliveries: deliveries.map(({ event, delivery }) => {
      const { subscription, state, nextAttemptAt, attempts } = delivery;
      const last = attempts.at(-1);
      return {
        ...named(event),
        subscription,
        state,
        attempts: attempts.length,
        nextAttemptAt,
        lastAttemptAt: last?.attemptedAt ?? null,
        status: last?.status ?? null,
        error: last?.error ?? null,
      };
    }),
    hasMore: next !== undefined,
  };
}

/** An event beside the operation that made it. */
export function eventView({ eventId, type, deliveries }: DeliveredEvent): EventView {
  return {
    id: eventId,
    type: shortType(type),
    deliveries: deliveries.map(({ subscription, state, attempts }) => ({
      subscription,
      state,
      attempts: attempts.length,
      lastError: attempts.at(-1)?.error ?? null,
    })),
  };
}

/** The event with its body, its headers and its attempts. Undefined: there is no such event. */
export async function eventDetails(
  db: Kysely<Schema>,
  targetOf: TargetOf,
  eventId: string,
  now: number,
): Promise<EventDetails | undefined> {
  const [event] = await deliveriesOfEvent(db, eventId);
  if (event === undefined) return undefined;
  const { body, deliveries } = event;
  const channels = await channelsOf(db, event.feed);
  const headersTo = (channel: Channel | undefined): Record<string, string> => {
    const target = channel && targetOf(event.feed, channel);
    if (target === undefined) return {};
    const secret = [...Object.keys(target.headers), 'authorization'];
    const headers = deliveryHeaders(target, { body: Buffer.from(body), eventId, now });
    return Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [
        name,
        secret.includes(name) || SIGNATURE.test(name) ? SECRET : value,
      ]),
    );
  };
  return {
    ...named(event),
    body,
    deliveries: deliveries.map((delivery) => ({
      ...delivery,
      headers: headersTo(channels.find(({ subscription }) => subscription === delivery.subscription)),
    })),
  };
}
