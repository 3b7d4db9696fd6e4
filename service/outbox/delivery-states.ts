import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';

/** A recorded attempt. */
export interface Attempt {
  attempt: number;
  attemptedAt: number;
  status: number | null;
  error: string | null;
  milliseconds: number;
}

/** Where an event is in a channel. `orphaned`: its block was orphaned. */
export type DeliveryOutcome = 'waiting' | 'delivered' | 'dead' | 'orphaned';

/** Where an event is in one channel that it was enqueued for. */
export interface DeliveryStateOf {
  /** Key of the event. */
  event: number;
  channel: number;
  /** Name of the subscription. */
  subscription: string;
  state: DeliveryOutcome;
  /** When the event that waits is sent next. Null: behind another of its token, or it does not wait. */
  nextAttemptAt: number | null;
  /** Whether it waits for another attempt. */
  hasFailed: boolean;
  /** The oldest first. */
  attempts: Attempt[];
}

/** An event of one feed, by its key. */
interface StoredEvent {
  id: number;
  token: number;
  orphanedAt: number | null;
}

/** Both engines limit the parameters of a statement. */
const BATCH = 200;

/**
 * Finds where events of one feed are in each channel that they were enqueued for, in the order of the events
 * and of the channels. The number of statements does not depend on the number of channels.
 */
export async function deliveryStatesOf(
  db: Kysely<Schema>,
  feed: number,
  events: readonly StoredEvent[],
): Promise<DeliveryStateOf[]> {
  const states: DeliveryStateOf[] = [];
  for (let from = 0; from < events.length; from += BATCH)
    states.push(...(await statesOfBatch(db, feed, events.slice(from, from + BATCH))));
  return states;
}

async function statesOfBatch(
  db: Kysely<Schema>,
  feed: number,
  events: readonly StoredEvent[],
): Promise<DeliveryStateOf[]> {
  const ids = events.map(({ id }) => id);
  const [attempts, dead, waiting] = await Promise.all([
    db
      .selectFrom('attempts')
      .select(['event', 'channel', 'attempt', 'attempted_at as attemptedAt', 'status', 'error'])
      .select('milliseconds')
      .where('event', 'in', ids)
      .orderBy('attempted_at')
      .orderBy('attempt')
      .execute(),
    db
      .selectFrom('channels')
      .innerJoin('dead_letters', 'dead_letters.channel', 'channels.id')
      .select(['dead_letters.channel', 'dead_letters.event'])
      .where('channels.feed', '=', feed)
      .where('dead_letters.event', 'in', ids)
      .execute(),
    waitingIn(db, feed, events),
  ]);
  const found = new Map<number, Map<number, Found>>();
  const at = (event: number, channel: number): Found => {
    const ofEvent = found.get(event) ?? new Map<number, Found>();
    const one = ofEvent.get(channel) ?? { attempts: [], isDead: false, waits: undefined };
    found.set(event, ofEvent.set(channel, one));
    return one;
  };
  for (const { event, channel, ...attempt } of attempts) at(event, channel).attempts.push(attempt);
  for (const { event, channel } of dead) at(event, channel).isDead = true;
  for (const { event, channel, ...waits } of waiting) at(event, channel).waits = waits;
  const names = await namesOf(db, feed, isAnyOrphaned(events) ? undefined : channelsIn(found));
  return events.flatMap(({ id: event, orphanedAt }) => {
    const ofEvent = found.get(event) ?? new Map<number, Found>();
    // An orphaned event was taken out of the queues, so it may be in none of them.
    const channels = orphanedAt === null ? [...ofEvent.keys()].sort(ascending) : [...names.keys()];
    return channels.flatMap((channel) => {
      const subscription = names.get(channel);
      if (subscription === undefined) return [];
      const { attempts: made = [], isDead, waits } = ofEvent.get(channel) ?? {};
      const state = isDead ? 'dead' : waits ? 'waiting' : orphanedAt === null ? 'delivered' : 'orphaned';
      const { nextAttemptAt = null, hasFailed = false } = waits ?? {};
      return { event, channel, subscription, state, nextAttemptAt, hasFailed, attempts: made };
    });
  });
}

function isAnyOrphaned(events: readonly StoredEvent[]): boolean {
  return events.some(({ orphanedAt }) => orphanedAt !== null);
}

function channelsIn(found: ReadonlyMap<number, ReadonlyMap<number, Found>>): number[] {
  return [...new Set([...found.values()].flatMap((ofEvent) => [...ofEvent.keys()]))];
}

function ascending(left: number, right: number): number {
  return left - right;
}

/** Names of the subscriptions of a feed's channels, or of these, in the order of the channels. */
async function namesOf(
  db: Kysely<Schema>,
  feed: number,
  channels: number[] | undefined,
): Promise<ReadonlyMap<number, string>> {
  if (channels?.length === 0) return new Map();
  const rows = await db
    .selectFrom('channels')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select(['channels.id', 'subscriptions.name'])
    .where('channels.feed', '=', feed)
    .$if(channels !== undefined, (query) => query.where('channels.id', 'in', channels ?? []))
    .orderBy('channels.id')
    .execute();
  return new Map(rows.map(({ id, name }) => [id, name]));
}

interface Found {
  attempts: Attempt[];
  isDead: boolean;
  waits: Waits | undefined;
}

type Waits = Pick<DeliveryStateOf, 'nextAttemptAt' | 'hasFailed'>;

async function waitingIn(
  db: Kysely<Schema>,
  feed: number,
  events: readonly StoredEvent[],
): Promise<(Waits & { event: number; channel: number })[]> {
  const rows = await db
    .selectFrom('channels')
    .innerJoin('queues', 'queues.channel', 'channels.id')
    .innerJoin('deliveries', (join) =>
      join
        .onRef('deliveries.channel', '=', 'queues.channel')
        .onRef('deliveries.token', '=', 'queues.token')
        .onRef('deliveries.position', '>=', 'queues.head'),
    )
    .select(['deliveries.event', 'deliveries.channel', 'deliveries.position'])
    .select(['queues.head', 'queues.next_attempt_at', 'queues.attempts', 'queues.lease'])
    .where('channels.feed', '=', feed)
    .where('queues.token', 'in', [...new Set(events.map(({ token }) => token))])
    .where(
      'deliveries.event',
      'in',
      events.map(({ id }) => id),
    )
    .execute();
  return rows.map(({ event, channel, position, head, attempts, lease, ...queue }) => {
    if (position !== head) return { event, channel, nextAttemptAt: null, hasFailed: false };
    // The attempt under way of a leased queue is counted already.
    const hasFailed = attempts > (lease === null ? 0 : 1);
    return { event, channel, nextAttemptAt: queue.next_attempt_at, hasFailed };
  });
}
