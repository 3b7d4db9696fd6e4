import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { deliveryStatesOf, type DeliveryStateOf } from '../outbox/delivery-states';
import { findFeeds, registryOfFeed } from '../outbox/find-feeds';
import { idOfBytes } from '../outbox/stored-ids';
import { deadCandidates, queuedCandidates, type Candidates } from './delivery-candidates';
import { shortType } from '../events/event-types';
import { shownState, shownTokenId } from './shown-events';
import type { DeliveryList, DeliveryView } from './views';

/** Selects deliveries. Undefined: all states, all subscriptions. Those that failed are waiting, too. */
export interface DeliveriesWanted {
  state: DeliveryView['state'] | undefined;
  subscription: string | undefined;
  limit: number;
}

/** Events that are looked at in one step, and in all. */
const STEP = 100;
const MOST_EVENTS = 2_000;

/**
 * Lists deliveries of all registries, those of the newest events first. It looks at a bounded number of
 * events, so a list may be short although more follow: `hasMore` says so.
 */
export async function listDeliveries(db: Kysely<Schema>, wanted: DeliveriesWanted): Promise<DeliveryList> {
  const feeds = await feedsByKey(db);
  if (feeds.size === 0) return { deliveries: [], hasMore: false };
  const { state } = wanted;
  const candidates =
    state === 'dead'
      ? await deadCandidates(db, wanted, MOST_EVENTS)
      : state === 'waiting' || state === 'failed'
        ? await queuedCandidates(db, wanted, MOST_EVENTS)
        : undefined;
  const deliveries: DeliveryView[] = [];
  const ids = candidates?.ids.slice(0, MOST_EVENTS);
  let below: number | undefined;
  for (let seen = 0; seen < MOST_EVENTS; seen += STEP) {
    const step = ids?.slice(seen, seen + STEP);
    if (step?.length === 0) return cut(deliveries, wanted, candidates);
    const events = await eventsOf(db, [...feeds.keys()], step ? { ids: step } : { below });
    if (step === undefined && events.length === 0) return cut(deliveries, wanted, candidates);
    below = events.at(-1)?.id ?? below;
    deliveries.push(...(await viewsOf(db, feeds, events, wanted)));
    if (deliveries.length > wanted.limit) return cut(deliveries, wanted, candidates);
  }
  return { deliveries: deliveries.slice(0, wanted.limit), hasMore: true };
}

function cut(
  deliveries: readonly DeliveryView[],
  { limit }: DeliveriesWanted,
  candidates: Candidates | undefined,
): DeliveryList {
  const hasMore = deliveries.length > limit || candidates?.hasMore === true;
  return { deliveries: deliveries.slice(0, limit), hasMore };
}

/** Names of the current feeds by their keys. */
async function feedsByKey(db: Kysely<Schema>): Promise<ReadonlyMap<number, string>> {
  const names = await findFeeds(db);
  if (names.length === 0) return new Map();
  const rows = await db.selectFrom('feeds').select(['id', 'feed']).where('feed', 'in', names).execute();
  return new Map(rows.map(({ id, feed }) => [id, feed]));
}

interface EventRow {
  id: number;
  feed: number;
  token: number;
  orphanedAt: number | null;
  eventId: Uint8Array | ArrayBuffer;
  type: string;
  tokenId: string;
}

/** Events with these keys, or before a key; undefined: any. */
type Wanted = { ids: readonly number[] } | { below: number | undefined };

/** The newest first. */
async function eventsOf(db: Kysely<Schema>, feeds: number[], wanted: Wanted): Promise<EventRow[]> {
  const rows = db
    .selectFrom('events')
    .innerJoin('tokens', 'tokens.id', 'events.token')
    .select(['events.id', 'events.feed', 'events.token', 'events.orphaned_at as orphanedAt'])
    .select(['events.event_id as eventId', 'events.type', 'tokens.token_id as tokenId'])
    .where((eb) => {
      if ('ids' in wanted) return eb('events.id', 'in', wanted.ids);
      return wanted.below === undefined ? eb.lit(true) : eb('events.id', '<', wanted.below);
    });
  return (
    rows
      // The sum keeps SQLite from reading all events of the feeds, and sorting them.
      .where((eb) => eb(eb('events.feed', '+', 0), 'in', feeds))
      .orderBy('events.id', 'desc')
      .limit(STEP)
      .execute()
  );
}

async function viewsOf(
  db: Kysely<Schema>,
  feeds: ReadonlyMap<number, string>,
  events: readonly EventRow[],
  { state, subscription }: DeliveriesWanted,
): Promise<DeliveryView[]> {
  const states: DeliveryStateOf[] = [];
  for (const feed of new Set(events.map((event) => event.feed))) {
    const own = events.filter((event) => event.feed === feed);
    states.push(...(await deliveryStatesOf(db, feed, own)));
  }
  return events.flatMap((event) =>
    states
      .filter((one) => one.event === event.id)
      .flatMap((one) => viewOf(event, registryOfFeed(feeds.get(event.feed) ?? ''), one) ?? [])
      .filter((view) => (subscription ?? view.subscription) === view.subscription)
      .filter((view) => isWanted(view.state, state)),
  );
}

function isWanted(state: DeliveryView['state'], wanted: DeliveriesWanted['state']): boolean {
  return wanted === undefined || state === wanted || (wanted === 'waiting' && state === 'failed');
}

/** Undefined if the event was orphaned. */
function viewOf(event: EventRow, registry: string, found: DeliveryStateOf): DeliveryView | undefined {
  const { subscription, attempts, nextAttemptAt } = found;
  const state = shownState(found);
  if (state === 'orphaned') return undefined;
  const last = attempts.at(-1);
  return {
    eventId: idOfBytes(event.eventId),
    type: shortType(event.type),
    registry,
    tokenId: shownTokenId(event.tokenId),
    subscription,
    state,
    attempts: attempts.length,
    nextAttemptAt,
    lastAttemptAt: last?.attemptedAt ?? null,
    status: last?.status ?? null,
    error: last?.error ?? null,
  };
}
