import type { Kysely } from 'kysely';
import { registryName } from '../base/registry-name';
import type { Config } from '../config/config';
import type { Schema } from '../database/schema';
import { readRegistries } from '../followed-registries/stored-registries';
import { DEFAULT_SUBSCRIPTION } from '../outbox/channels';
import { findFeeds, registryOfFeed } from '../outbox/feeds';
import { worstOf, type Subscription, type SubscriptionState } from './subscription';

/** A subscription that is not active, or whose deliveries fail. */
export interface TroubledSubscription {
  id: string;
  state: SubscriptionState;
  /** Start of the failures, if they have lasted too long. Epoch milliseconds. */
  failingSince: number | undefined;
}

/** The states of all subscriptions. */
export type SubscriptionsHealth = Awaited<ReturnType<typeof subscriptionsHealth>>;

/** Selects the feeds whose deliveries count. */
export interface HealthQuery {
  feeds: readonly string[];
  /** A subscription is failing if its failures began at this time or earlier. Epoch milliseconds. */
  failingBefore: number;
  /** Whether the settings have a webhook: without one there is no subscription `default`. */
  hasDefault: boolean;
}

/** The feeds and limits of the health of subscriptions. Registries that are not followed do not count. */
export async function healthQueryOf(
  config: Pick<Config, 'registries' | 'subscriptionFailingAfterMinutes'>,
  db: Kysely<Schema>,
  now: number,
): Promise<HealthQuery> {
  const followed = new Set([
    ...config.registries.map(({ network, address }) => registryName(network.chainId, address)),
    ...(await readRegistries(db)).map(({ chainId, address }) => registryName(chainId, address)),
  ]);
  return {
    feeds: (await findFeeds(db)).filter((feed) => followed.has(registryOfFeed(feed))),
    failingBefore: now - config.subscriptionFailingAfterMinutes * 60_000,
    hasDefault: config.registries.some(({ webhook }) => webhook !== undefined),
  };
}

/** Reads the states of all subscriptions. Failing ones come first, the longest failing one first. */
export async function subscriptionsHealth(db: Kysely<Schema>, query: HealthQuery) {
  const [counts, troubled] = await Promise.all([
    db
      .selectFrom('subscriptions')
      .select(['state', (eb) => eb.fn.countAll().as('count')])
      .where('definition', 'is not', null)
      .groupBy('state')
      .execute(),
    troubledSubscriptions(db, query),
  ]);
  const byState: Record<SubscriptionState, number> = { active: 0, paused: 0, gone: 0 };
  for (const { state, count } of counts) byState[state] = Number(count);
  if (query.hasDefault) byState[troubled.find(({ id }) => id === DEFAULT_SUBSCRIPTION)?.state ?? 'active']++;
  return { byState, troubled };
}

/** Adds `failingSince` to those of these subscriptions whose deliveries have failed for long enough. */
export async function withFailures<Shown extends Pick<Subscription, 'id'>>(
  db: Kysely<Schema>,
  subscriptions: readonly Shown[],
  query: HealthQuery,
): Promise<(Shown & { failingSince?: string })[]> {
  const names = subscriptions.map(({ id }) => id);
  const troubled = names.length === 0 ? [] : await troubledSubscriptions(db, query, names);
  const failing = new Map(troubled.map(({ id, failingSince }) => [id, failingSince]));
  return subscriptions.map((one) => {
    const since = failing.get(one.id);
    return since === undefined ? one : { ...one, failingSince: new Date(since).toISOString() };
  });
}

async function troubledSubscriptions(
  db: Kysely<Schema>,
  { feeds, failingBefore, hasDefault }: HealthQuery,
  names?: readonly string[],
): Promise<TroubledSubscription[]> {
  if (feeds.length === 0) return [];
  const rows = await db
    .selectFrom('channels')
    .innerJoin('feeds', 'feeds.id', 'channels.feed')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select(['subscriptions.name', 'channels.state', 'channels.failing_since'])
    .where('feeds.feed', 'in', feeds)
    .where((eb) =>
      eb.or([eb('channels.state', '<>', 'active'), eb('channels.failing_since', '<=', failingBefore)]),
    )
    .$if(names !== undefined, (query) => query.where('subscriptions.name', 'in', names ?? []))
    .orderBy('channels.id')
    .execute();
  const troubled = new Map<string, TroubledSubscription>();
  for (const { name: id, state, failing_since } of rows) {
    if (id === DEFAULT_SUBSCRIPTION && !hasDefault) continue;
    const other = troubled.get(id);
    const since = state === 'active' ? (failing_since ?? undefined) : undefined;
    const both = [since, other?.failingSince].filter((one) => one !== undefined);
    troubled.set(id, {
      id,
      state: worstOf([state, other?.state]),
      failingSince: both.length > 0 ? Math.min(...both) : undefined,
    });
  }
  const order = ({ failingSince = Infinity }: TroubledSubscription): number => failingSince;
  return [...troubled.values()].sort((left, right) => order(left) - order(right));
}
