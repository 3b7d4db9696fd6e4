import { sql, type Kysely, type Selectable, type Transaction } from 'kysely';
import { RequestError } from '../base/errors';
import { registryName } from '../base/registry-name';
import type { Config } from '../config/config';
import type { Database } from '../database/database';
import type { Schema, SubscriptionsTable } from '../database/schema';
import { subjectOfSubscription, type Condition } from '../events/conditions';
import { readRegistries } from '../followed-registries/stored-registries';
import { noteChange } from '../outbox/changes';
import { endTrouble, forgetConditions } from '../outbox/conditions';
import { findFeeds, registryOfFeed } from '../outbox/feeds';
import { undeliveredOf } from '../outbox/outbox-figures';
import {
  addDefault,
  addMissingChannels,
  addOperationsChannel,
  channelKeysOf,
  channelsOf,
  DEFAULT_SUBSCRIPTION,
  FIRST_FILL,
} from '../outbox/channels';
import { endPauses } from '../outbox/claim-queues';
import { removeQueues } from '../outbox/purge-events';
import { decryptSecrets, encryptSecrets, type SecretsKey } from './secrets';
import {
  presentSubscription,
  worstOf,
  type Headers,
  type StoredSubscription,
  type Subscription,
  type SubscriptionState,
} from './subscription';

/** A subscription in the database. */
export type SubscriptionRow = Selectable<SubscriptionsTable>;

/** The members of a subscription that are stored encrypted. */
interface Secrets {
  headers?: Headers | undefined;
  secret?: string | undefined;
}

/** Upper bound of the number of subscriptions: each is tried on every event. */
export const MOST_SUBSCRIPTIONS = 10_000;
/** Those of one owner. */
const MOST_OF_OWNER = 100;
/** Anybody can make wallets: of one, and of all together. */
const MOST_OF_WALLET = 10;
const MOST_OF_WALLETS = 5_000;

/** The row's subscription, with its secrets and its present state. */
export function subscriptionOf(
  row: Omit<SubscriptionRow, 'id' | 'created_at' | 'changed_at' | 'owner'>,
  key: SecretsKey,
): StoredSubscription {
  const subscription = withoutSecretsOf(row);
  if (row.secrets === null) return subscription;
  const { headers, secret } = JSON.parse(decryptSecrets(key, row.secrets, row.name)) as Secrets;
  return {
    ...subscription,
    protocolsettings: { ...subscription.protocolsettings, ...(headers && { headers }) },
    config: { ...subscription.config, ...(secret !== undefined && { secret }) },
  };
}

/** The row's subscription as it is shown: the values of headers are masked. */
export function withoutSecretsOf({
  definition,
  state,
}: Pick<SubscriptionRow, 'definition' | 'state'>): Subscription {
  const subscription = JSON.parse(definition ?? '{}') as Subscription;
  return { ...subscription, config: { ...subscription.config, state } };
}

function columnsOf(
  subscription: StoredSubscription,
  key: SecretsKey,
): Pick<SubscriptionRow, 'definition' | 'secrets' | 'state'> {
  const { id, protocolsettings, config } = subscription;
  const secrets: Secrets = { headers: protocolsettings?.headers, secret: config.secret };
  const hasNone = Object.values(secrets).every((one) => one === undefined);
  return {
    definition: JSON.stringify(presentSubscription(subscription)),
    secrets: hasNone ? null : encryptSecrets(key, JSON.stringify(secrets), id),
    state: config.state,
  };
}

/** Selects the subscriptions that were made by a request; with an owner, only its own. */
function storedIn(db: Kysely<Schema>, owner?: string) {
  return db
    .selectFrom('subscriptions')
    .selectAll()
    .where('definition', 'is not', null)
    .$if(owner !== undefined, (query) => query.where('owner', '=', owner ?? ''));
}

/** Selects the subscription of the settings. */
function defaultIn(db: Kysely<Schema>) {
  return db.selectFrom('subscriptions').selectAll().where('definition', 'is', null);
}

/** Subscriptions of the API, in the order of their creation. `after`: the key of the one before the page. */
export async function listSubscriptions(
  db: Kysely<Schema>,
  { after, limit, owner }: { after: number; limit: number; owner?: string | undefined },
): Promise<SubscriptionRow[]> {
  return storedIn(db, owner).where('id', '>', after).orderBy('id').limit(limit).execute();
}

/** Finds a subscription of the API; with an owner, only one of its own. */
export async function findSubscription(
  db: Kysely<Schema>,
  name: string,
  owner?: string,
): Promise<SubscriptionRow | undefined> {
  return storedIn(db, owner).where('name', '=', name).executeTakeFirst();
}

/** The names of an owner's subscriptions. */
export async function namesOfOwner(db: Kysely<Schema>, owner: string): Promise<string[]> {
  const rows = await db.selectFrom('subscriptions').select('name').where('owner', '=', owner).execute();
  return rows.map(({ name }) => name);
}

/**
 * Stores a new subscription with a channel for each feed.
 *
 * @throws RequestError SUBSCRIPTIONS_TOO_MANY, SECRETS_KEY_MISSING.
 */
export async function addSubscription(
  { db }: Database,
  subscription: StoredSubscription,
  key: SecretsKey,
  now: number,
  owner?: string,
): Promise<void> {
  const columns = columnsOf(subscription, key);
  await db.transaction().execute(async (transaction) => {
    await noteChange(transaction, subscription.id);
    const { all, ofWallets, ofOwner } = await storedIn(transaction)
      .clearSelect()
      .select(({ fn }) => [
        fn.countAll<number>().as('all'),
        sql<number>`count(case when owner like ${`${WALLETS}%`} then 1 end)`.as('ofWallets'),
        sql<number>`count(case when owner = ${owner ?? ''} then 1 end)`.as('ofOwner'),
      ])
      .executeTakeFirstOrThrow();
    const isOfWallet = owner?.startsWith(WALLETS) === true;
    const isFull =
      all >= MOST_SUBSCRIPTIONS ||
      (isOfWallet && ofWallets >= MOST_OF_WALLETS) ||
      (owner !== undefined && ofOwner >= (isOfWallet ? MOST_OF_WALLET : MOST_OF_OWNER));
    if (isFull) {
      // A holder does not see how many others have.
      const many = owner === undefined ? `${MOST_SUBSCRIPTIONS}` : 'too many';
      throw new RequestError(
        'SUBSCRIPTIONS_TOO_MANY',
        `There are ${many} subscriptions already. Delete one first.`,
      );
    }
    const { id } = await transaction
      .insertInto('subscriptions')
      .values({ ...columns, name: subscription.id, created_at: now, changed_at: now, owner })
      .returning('id')
      .executeTakeFirstOrThrow();
    await addMissingChannels(transaction, id);
    const { startFrom } = subscription.config;
    const fill_block = startFrom === 'beginning' ? FIRST_FILL : Number(startFrom) - 1;
    const current = startFrom === 'now' ? [] : await findFeeds(transaction);
    const channels = await channelKeysOf(transaction, current, [subscription.id]);
    if (channels.length > 0)
      await transaction.updateTable('channels').set({ fill_block }).where('id', 'in', channels).execute();
    await addOperationsChannel(transaction, { id, ...columns }, now);
  });
}

/** The owners that are wallets begin with it. */
const WALLETS = 'eip155:';

/** Replaces a subscription, if there is one. */
export async function replaceSubscription(
  database: Database,
  name: string,
  replacementOf: (row: SubscriptionRow) => StoredSubscription,
  key: SecretsKey,
  now: number,
): Promise<void> {
  const find = (db: Kysely<Schema>) => findSubscription(db, name);
  await change(database, name, find, (row) => columnsOf(replacementOf(row), key), now);
}

/** Pauses the active subscriptions whose owner has no live key. Returns whether there was one. */
export async function pauseOwnerless(database: Database, now: number): Promise<boolean> {
  const found = (db: Kysely<Schema>) =>
    storedIn(db)
      .where('state', '=', 'active')
      .where('owner', 'is not', null)
      .where('owner', 'not in', (eb) =>
        eb
          .selectFrom('access_keys')
          .select('access_keys.owner')
          .where('expires_at', '>', now)
          .where('ended_at', 'is', null),
      );
  const names = (await found(database.db).execute()).map(({ name }) => name);
  for (const name of names) {
    const find = (db: Kysely<Schema>) => found(db).where('name', '=', name).executeTakeFirst();
    await change(database, name, find, () => ({ state: 'paused' }), now);
  }
  return names.length > 0;
}

/** The state of `default` in these feeds. The registries may have different webhooks: one may be gone. */
export async function defaultStateOf(
  db: Kysely<Schema>,
  feeds: readonly string[],
): Promise<SubscriptionState> {
  const channels = await Promise.all(feeds.map((feed) => channelsOf(db, feed, DEFAULT_SUBSCRIPTION)));
  const states = channels.flat().map(({ state }) => state);
  if (states.length > 0) return worstOf(states);
  const row = await defaultIn(db).executeTakeFirst();
  return row?.state ?? 'active';
}

/** Pauses or resumes the subscription `default`, whose other members are settings. */
export async function setDefaultState(
  database: Database,
  state: SubscriptionState,
  now: number,
): Promise<void> {
  const find = async (db: Transaction<Schema>) => {
    await addDefault(db, now);
    return defaultIn(db).executeTakeFirst();
  };
  await change(database, DEFAULT_SUBSCRIPTION, find, () => ({ state }), now);
}

/**
 * Changes a row, if `find` gives it, and the state of its channels. Failures before a pause do not count
 * after it: a resumed subscription is tried at once.
 */
async function change(
  database: Database,
  name: string,
  find: (db: Transaction<Schema>) => Promise<SubscriptionRow | undefined>,
  columnsFor: (row: SubscriptionRow) => { state: SubscriptionState } & Partial<SubscriptionRow>,
  now: number,
): Promise<void> {
  await database.db.transaction().execute(async (db) => {
    await noteChange(db, name);
    const row = await find(db);
    if (row === undefined) return;
    const { id, changed_at, state: before } = row;
    const columns = columnsFor(row);
    const { state, definition } = columns;
    // Always later than before, even if the clock was set back: deliveries notice the change by it.
    await db
      .updateTable('subscriptions')
      .set({ ...columns, changed_at: Math.max(now, changed_at + 1) })
      .where('id', '=', id)
      .execute();
    if (definition) await addOperationsChannel(db, { id, state, definition }, now);
    // A channel of `default` may be gone while the others are active.
    if (state === before && row.definition !== null) return;
    await sql`update channels set state = ${state}, failing_since = null
      where subscription = ${id}`.execute(db);
    if (state !== 'active') return;
    await endTrouble(db, name, now);
    for (const channel of await channelsOfSubscription(db, id))
      await endPauses(database, db, { channel, now });
  });
}

/**
 * Deletes a subscription with its queues.
 *
 * @param isForced false: if events are undelivered, nothing is deleted.
 * @returns the number of undelivered events, and whether it was deleted. Undefined if there is
 *   no such subscription.
 */
export async function removeSubscription(
  database: Database,
  name: string,
  isForced: boolean,
): Promise<{ undelivered: number; subscription: Subscription; isRemoved: boolean } | undefined> {
  const removed = await database.db.transaction().execute(async (transaction) => {
    await noteChange(transaction, name);
    const row = await findSubscription(transaction, name);
    if (row === undefined) return undefined;
    const channels = await channelsOfSubscription(transaction, row.id);
    const undelivered = await undeliveredOf(transaction, row);
    const isRemoved = undelivered === 0 || isForced;
    if (isRemoved) {
      await transaction.deleteFrom('channels').where('subscription', '=', row.id).execute();
      await transaction.deleteFrom('subscriptions').where('id', '=', row.id).execute();
      await forgetConditions(transaction, 'subject', subjectOfSubscription(name));
    }
    return { undelivered, subscription: withoutSecretsOf(row), channels, isRemoved };
  });
  if (removed === undefined) return undefined;
  const { channels, ...rest } = removed;
  if (rest.isRemoved) await removeQueues(database, channels);
  return rest;
}

async function channelsOfSubscription(db: Kysely<Schema>, id: number): Promise<number[]> {
  const rows = await db.selectFrom('channels').select('id').where('subscription', '=', id).execute();
  return rows.map((row) => row.id);
}

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

/** Adds `failingSince` to those of these subscriptions that are failing. One that is paused fails no more. */
export function withFailures<Shown extends Pick<Subscription, 'id' | 'config'>>(
  subscriptions: readonly Shown[],
  conditions: readonly Condition[],
): (Shown & { failingSince?: string })[] {
  const failing = conditions.filter(({ what }) => what === 'subscription_failing');
  const since = new Map(failing.map((one) => [one.subject, new Date(one.since).toISOString()]));
  return subscriptions.map((one) => {
    const failingSince = since.get(subjectOfSubscription(one.id));
    return failingSince === undefined || one.config.state !== 'active' ? one : { ...one, failingSince };
  });
}
