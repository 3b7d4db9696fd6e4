import type { Kysely } from 'kysely';
import { registryName } from '../base/registry-name';
import type { Config } from '../config/config';
import type { Schema } from '../database/schema';
import { subjectOfSubscription, type Condition } from '../events/conditions';
import { readRegistries } from '../followed-registries/stored-registries';
import { DEFAULT_SUBSCRIPTION } from '../outbox/channels';
import { findFeeds, registryOfFeed } from '../outbox/feeds';
import type { Subscription, SubscriptionState } from './subscription';

/** The current feeds of the registries that are followed. */
export async function followedFeeds(
  { registries }: Pick<Config, 'registries'>,
  db: Kysely<Schema>,
): Promise<string[]> {
  const followed = new Set([
    ...registries.map(({ network, address }) => registryName(network.chainId, address)),
    ...(await readRegistries(db)).map(({ chainId, address }) => registryName(chainId, address)),
  ]);
  return (await findFeeds(db)).filter((feed) => followed.has(registryOfFeed(feed)));
}

/** The number of subscriptions by state. `default` is one of them if the settings have a webhook. */
export async function countSubscriptions(
  { registries }: Pick<Config, 'registries'>,
  db: Kysely<Schema>,
  conditions: readonly Condition[],
): Promise<Record<SubscriptionState, number>> {
  const counts = await db
    .selectFrom('subscriptions')
    .select(['state', (eb) => eb.fn.countAll().as('count')])
    .where('definition', 'is not', null)
    .groupBy('state')
    .execute();
  const byState: Record<SubscriptionState, number> = { active: 0, paused: 0, gone: 0 };
  for (const { state, count } of counts) byState[state] = Number(count);
  const isOfDefault = (state: SubscriptionState): boolean =>
    conditions.some(
      ({ what, subject }) =>
        what === `subscription_${state}` && subject === subjectOfSubscription(DEFAULT_SUBSCRIPTION),
    );
  if (registries.some(({ webhook }) => webhook !== undefined))
    byState[(['gone', 'paused'] as const).find(isOfDefault) ?? 'active']++;
  return byState;
}

/** Adds `failingSince` to those of these subscriptions that are failing. */
export function withFailures<Shown extends Pick<Subscription, 'id'>>(
  subscriptions: readonly Shown[],
  conditions: readonly Condition[],
): (Shown & { failingSince?: string })[] {
  const failing = conditions.filter(({ what }) => what === 'subscription_failing');
  const since = new Map(failing.map((one) => [one.subject, new Date(one.since).toISOString()]));
  return subscriptions.map((one) => {
    const failingSince = since.get(subjectOfSubscription(one.id));
    return failingSince === undefined ? one : { ...one, failingSince };
  });
}
