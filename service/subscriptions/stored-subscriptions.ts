import type { Kysely, Selectable, Transaction } from 'kysely';
import { RequestError } from '../base/errors';
import type { Database } from '../database/database';
import type { Schema, SubscriptionsTable } from '../database/schema';
import { OPERATIONS, subjectOfSubscription } from '../events/conditions';
import { noteChange } from '../outbox/changes';
import { endTrouble, forgetConditions } from '../outbox/conditions';
import { findFeeds } from '../outbox/feeds';
import { undeliveredOf } from '../outbox/outbox-figures';
import {
  addDefault,
  addOperationsChannel,
  channelsOf,
  DEFAULT_SUBSCRIPTION,
  FIRST_FILL,
} from '../outbox/channels';
import { endPauses } from '../outbox/claim-queues';
import { removeQueues } from '../outbox/purge-events';
import type { SecretsCipher } from './secrets';
import {
  withMaskedHeaders,
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
  headers?: Headers;
  secret?: string;
}

/** Upper bound of the number of subscriptions: each is tried on every event. */
export const MOST_SUBSCRIPTIONS = 10_000;

/** The row's subscription, with its secrets and its present state. */
export function subscriptionOf(
  row: Omit<SubscriptionRow, 'id' | 'created_at' | 'changed_at'>,
  cipher: SecretsCipher,
): StoredSubscription {
  const subscription = withoutSecretsOf(row);
  if (row.secrets === null) return subscription;
  const { headers, secret } = JSON.parse(cipher.decrypt(row.secrets, row.name)) as Secrets;
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
  cipher: SecretsCipher,
): Pick<SubscriptionRow, 'definition' | 'secrets' | 'state'> {
  const { headers } = subscription.protocolsettings ?? {};
  const { secret, ...config } = subscription.config;
  const secrets: Secrets = { ...(headers && { headers }), ...(secret !== undefined && { secret }) };
  const protocolsettings = withMaskedHeaders(subscription.protocolsettings ?? {});
  return {
    definition: JSON.stringify({ ...subscription, protocolsettings, config }),
    secrets:
      Object.keys(secrets).length === 0 ? null : cipher.encrypt(JSON.stringify(secrets), subscription.id),
    state: config.state,
  };
}

/** Selects the subscriptions that were made by a request. */
function storedIn(db: Kysely<Schema>) {
  return db.selectFrom('subscriptions').selectAll().where('definition', 'is not', null);
}

/** Selects the subscription of the settings. */
function defaultIn(db: Kysely<Schema>) {
  return db.selectFrom('subscriptions').selectAll().where('definition', 'is', null);
}

/** Subscriptions of the API, in the order of their creation. `after`: the name of the one before the page. */
export async function listSubscriptions(
  db: Kysely<Schema>,
  { after, limit }: { after: string | undefined; limit: number },
): Promise<SubscriptionRow[]> {
  return storedIn(db)
    .$if(after !== undefined, (query) =>
      query.where('id', '>', (eb) =>
        eb
          .selectFrom('subscriptions')
          .select('id')
          .where('name', '=', after ?? ''),
      ),
    )
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Finds a subscription of the API. */
export async function findSubscription(
  db: Kysely<Schema>,
  name: string,
): Promise<SubscriptionRow | undefined> {
  return storedIn(db).where('name', '=', name).executeTakeFirst();
}

/**
 * Stores a new subscription with a channel for each feed.
 *
 * @throws RequestError SUBSCRIPTIONS_TOO_MANY, SECRETS_KEY_MISSING.
 */
export async function addSubscription(
  { db }: Database,
  subscription: StoredSubscription,
  cipher: SecretsCipher,
  now: number,
): Promise<void> {
  const columns = columnsOf(subscription, cipher);
  await db.transaction().execute(async (transaction) => {
    await noteChange(transaction);
    const { count } = await transaction
      .selectFrom('subscriptions')
      .select((eb) => eb.fn.countAll().as('count'))
      .where('definition', 'is not', null)
      .executeTakeFirstOrThrow();
    if (Number(count) >= MOST_SUBSCRIPTIONS)
      throw new RequestError(
        'SUBSCRIPTIONS_TOO_MANY',
        `There are ${MOST_SUBSCRIPTIONS} subscriptions already. Delete one first.`,
      );
    const { id } = await transaction
      .insertInto('subscriptions')
      .values({ ...columns, name: subscription.id, created_at: now, changed_at: now })
      .returning('id')
      .executeTakeFirstOrThrow();
    const { startFrom } = subscription.config;
    const fill = startFrom === 'beginning' ? FIRST_FILL : Number(startFrom) - 1;
    const current = new Set(startFrom === 'now' ? [] : await findFeeds(transaction));
    const feeds = await transaction
      .selectFrom('feeds')
      .select(['id', 'feed'])
      .where('feed', '<>', OPERATIONS)
      .orderBy('id')
      .execute();
    const channels = feeds.map(({ id: feed, feed: name }) => ({
      subscription: id,
      feed,
      state: columns.state,
      fill_block: current.has(name) ? fill : null,
    }));
    if (channels.length > 0) await transaction.insertInto('channels').values(channels).execute();
    await addOperationsChannel(transaction, { id, ...columns }, now);
  });
}

/** Replaces a subscription, if there is one, and sets the state of its channels if it changed. */
export async function replaceSubscription(
  database: Database,
  name: string,
  change: (row: SubscriptionRow) => StoredSubscription,
  cipher: SecretsCipher,
  now: number,
): Promise<void> {
  await database.db.transaction().execute(async (transaction) => {
    await noteChange(transaction);
    const row = await findSubscription(transaction, name);
    if (row !== undefined) await update(database, transaction, row, columnsOf(change(row), cipher), now);
  });
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
  await database.db.transaction().execute(async (transaction) => {
    await noteChange(transaction);
    await addDefault(transaction, now);
    const row = await defaultIn(transaction).executeTakeFirstOrThrow();
    await update(database, transaction, row, { state }, now);
  });
}

/**
 * Changes a row, and the state of its channels. Failures before a pause do not count after it: a resumed
 * subscription is tried at once.
 */
async function update(
  database: Database,
  db: Transaction<Schema>,
  { id, name, definition, changed_at, state: before }: SubscriptionRow,
  columns: { state: SubscriptionState } & Partial<SubscriptionRow>,
  now: number,
): Promise<void> {
  // Always later than before, even if the clock was set back: deliveries notice the change by it.
  await db
    .updateTable('subscriptions')
    .set({ ...columns, changed_at: Math.max(now, changed_at + 1) })
    .where('id', '=', id)
    .execute();
  const { state } = columns;
  if (columns.definition) await addOperationsChannel(db, { id, state, definition: columns.definition }, now);
  // A channel of `default` may be gone while the others are active.
  if (columns.state === before && definition !== null) return;
  await db
    .updateTable('channels')
    .set({ state: columns.state, failing_since: null })
    .where('subscription', '=', id)
    .execute();
  await endTrouble(db, name, now);
  if (columns.state !== 'active') return;
  for (const channel of await channelsOfSubscription(db, id)) await endPauses(database, db, { channel, now });
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
    await noteChange(transaction);
    const row = await findSubscription(transaction, name);
    if (row === undefined) return undefined;
    const channels = await channelsOfSubscription(transaction, row.id);
    const undelivered = await undeliveredOf(transaction, row.id);
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

async function channelsOfSubscription(db: Kysely<Schema>, subscription: number): Promise<number[]> {
  const rows = await db
    .selectFrom('channels')
    .select('id')
    .where('subscription', '=', subscription)
    .execute();
  return rows.map(({ id }) => id);
}
