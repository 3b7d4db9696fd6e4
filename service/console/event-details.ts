import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { deliveryHeaders } from '../delivery/post';
import type { DeliveredFeed } from '../feed-set';
import { channelsOf, type Channel } from '../outbox/channels';
import { deliveryStatesOf } from '../outbox/delivery-states';
import { registryOfFeed } from '../outbox/find-feeds';
import { bytesOfId, isEventId } from '../outbox/stored-ids';
import { shortType } from '../events/event-types';
import { shownState, shownTokenId } from './shown-events';
import type { EventDetails } from './views';

/** Replaces a header's value that is secret. */
const SECRET = '•••';
/** A fresh signature of an old event would pass for a delivery. */
const SIGNATURE = /-signature$/i;

/** The event with its body, its headers and its attempts. Undefined: there is no such event. */
export async function eventDetails(
  db: Kysely<Schema>,
  feeds: readonly Pick<DeliveredFeed, 'opened' | 'targetOf'>[],
  eventId: string,
  now: number,
): Promise<EventDetails | undefined> {
  const event = await storedEvent(db, eventId);
  if (event === undefined) return undefined;
  const { body, feedName } = event;
  const feed = feeds.find(({ opened }) => opened === feedName);
  const channels = feed === undefined ? [] : await channelsOf(db, feedName);
  const bySubscription = new Map(channels.map((channel) => [channel.subscription, channel]));
  const headersTo = (channel: Channel | undefined): Record<string, string> => {
    const target = channel && feed?.targetOf(channel);
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
  const states = await deliveryStatesOf(db, event.feed, [event]);
  return {
    eventId,
    type: shortType(event.type),
    registry: registryOfFeed(feedName),
    tokenId: shownTokenId(event.tokenId),
    body,
    deliveries: states.map((found) => {
      const { subscription, attempts, nextAttemptAt } = found;
      const headers = headersTo(bySubscription.get(subscription));
      return { subscription, state: shownState(found), nextAttemptAt, headers, attempts };
    }),
  };
}

interface StoredEvent {
  id: number;
  token: number;
  feed: number;
  orphanedAt: number | null;
  type: string;
  body: string;
  feedName: string;
  tokenId: string;
}

/** A restarted local chain may have had the same event: the feed that was opened last counts. */
async function storedEvent(db: Kysely<Schema>, eventId: string): Promise<StoredEvent | undefined> {
  if (!isEventId(eventId)) return undefined;
  return db
    .selectFrom('events')
    .innerJoin('feeds', 'feeds.id', 'events.feed')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .select(['events.id', 'events.token', 'events.feed', 'events.orphaned_at as orphanedAt', 'events.type'])
    .select(['events.body', 'feeds.feed as feedName', 'tokens.token_id as tokenId'])
    .where('events.event_id', '=', bytesOfId(eventId))
    .orderBy('feeds.opened_at', 'desc')
    .executeTakeFirst();
}
