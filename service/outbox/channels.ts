import type { Kysely, Selectable, Transaction } from 'kysely';
import type { Schema, SubscriptionsTable } from '../database/schema';
import { OPERATIONS } from '../events/conditions';
import { namesOperations, type Selection } from '../events/select-events';
import { ALL_SUBSCRIPTIONS, holdChanges, noteChange } from './changes';

/** The subscription of WEBHOOK_URL and service.config.json. */
export const DEFAULT_SUBSCRIPTION = 'default';

/** `fill_block` of a channel that gets all events: no block comes before block 0. */
export const FIRST_FILL = -1;

/**
 * Adds the subscription `default` and the channels that are missing: each subscription has one for the feed
 * of each registry.
 */
export async function addChannels(db: Kysely<Schema>, now: number): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    // Waits for transactions that add subscriptions: they do not see the new feed.
    await holdChanges(transaction);
    await addDefault(transaction, now);
    const added = await transaction
      .insertInto('channels')
      .columns(['subscription', 'feed', 'state'])
      .expression((eb) =>
        eb
          .selectFrom('subscriptions')
          .innerJoin('feeds', (join) => join.on('feeds.feed', '<>', OPERATIONS))
          .select(['subscriptions.id', 'feeds.id', 'subscriptions.state']),
      )
      .onConflict((conflict) => conflict.columns(['feed', 'subscription']).doNothing())
      .returning('id')
      .execute();
    if (added.length > 0) await noteChange(transaction, ALL_SUBSCRIPTIONS);
  });
}

/**
 * Adds the channel of operational events to a subscription whose `types` name some. It is never filled: the
 * conditions that hold already are in GET /health. Without such a subscription there is no feed for them.
 */
export async function addOperationsChannel(
  transaction: Transaction<Schema>,
  {
    id: subscription,
    definition,
    state,
  }: Pick<Selectable<SubscriptionsTable>, 'id' | 'definition' | 'state'>,
  now: number,
): Promise<void> {
  if (!namesOperations(JSON.parse(definition ?? '{}') as Selection)) return;
  await transaction
    .insertInto('feeds')
    .values({ feed: OPERATIONS, next_block: 0, opened_at: now })
    .onConflict((conflict) => conflict.column('feed').doNothing())
    .execute();
  const { id: feed } = await transaction
    .selectFrom('feeds')
    .select('id')
    .where('feed', '=', OPERATIONS)
    .executeTakeFirstOrThrow();
  // All of its events have block 0. A purge goes up to the oldest kept block.
  await transaction
    .insertInto('blocks')
    .values({ feed, number: 0, hash: null })
    .onConflict((conflict) => conflict.columns(['feed', 'number']).doNothing())
    .execute();
  await transaction
    .insertInto('channels')
    .values({ subscription, feed, state })
    .onConflict((conflict) => conflict.columns(['feed', 'subscription']).doNothing())
    .execute();
}

/** Adds the subscription `default` unless it exists. A new database has none until it is needed. */
export async function addDefault(transaction: Transaction<Schema>, now: number): Promise<void> {
  await transaction
    .insertInto('subscriptions')
    .values({ name: DEFAULT_SUBSCRIPTION, definition: null, secrets: null, created_at: now, changed_at: now })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
}

/** Selects channels with their feeds and subscriptions. */
export function joinedChannels(db: Kysely<Schema>) {
  return db
    .selectFrom('channels')
    .innerJoin('feeds', 'feeds.id', 'channels.feed')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription');
}

/**
 * The keys of the feeds' channels, only those of some subscriptions if names are given. Statements name these
 * keys instead of joining: SQLite's planner does not know the numbers of rows, and would join in an order
 * that reads all queues.
 */
export async function channelKeysOf(
  db: Kysely<Schema>,
  feeds: readonly string[],
  subscriptions?: readonly string[],
): Promise<number[]> {
  if (feeds.length === 0 || subscriptions?.length === 0) return [];
  const rows = await channelsIn(db, feeds, subscriptions).select('channels.id').execute();
  return rows.map(({ id }) => id);
}

function channelsIn(db: Kysely<Schema>, feeds: readonly string[], names?: string | readonly string[]) {
  return joinedChannels(db)
    .where('feeds.feed', 'in', feeds)
    .$if(names !== undefined, (query) => query.where('subscriptions.name', 'in', [names ?? []].flat()))
    .orderBy('channels.id');
}

/** A channel with its subscription. */
export type Channel = Awaited<ReturnType<typeof channelsOf>>[number];

/** The channels of a feed; only those of some subscriptions if their names are given. */
export async function channelsOf(
  db: Kysely<Schema>,
  feed: string,
  subscriptions?: string | readonly string[],
) {
  return channelsIn(db, [feed], subscriptions)
    .select(['channels.id as channel', 'channels.feed', 'channels.state', 'channels.sink_hash as sinkHash'])
    .select(['subscriptions.name as subscription', 'subscriptions.definition', 'subscriptions.secrets'])
    .select(['subscriptions.changed_at as changedAt', 'channels.failing_since as failingSince'])
    .select((eb) => eb('channels.fill_block', 'is not', null).as('isFilling'))
    .execute();
}

/**
 * Stops a channel whose receiver answered 410, and all other channels of its subscription, which have the
 * same sink. The registries of `default` may have different sinks, so only this channel of `default` is
 * stopped.
 *
 * A request may have been under way while the subscription was changed. Its answer says nothing of the new
 * sink, so the channel is not stopped if its subscription was changed after `changedAt`.
 *
 * Call it before queues are locked. It locks rows in the same order as changes of subscriptions, and as the
 * recording of events: any other order could deadlock.
 *
 * @returns whether the channel was stopped.
 */
export async function stopChannel(
  db: Transaction<Schema>,
  channel: number,
  changedAt: number | undefined,
): Promise<boolean> {
  const row = await joinedChannels(db)
    .select(['channels.subscription', 'channels.state', 'subscriptions.name', 'definition'])
    .where('channels.id', '=', channel)
    .executeTakeFirst();
  if (row?.state !== 'active') return false;
  await noteChange(db, row.name);
  if (changedAt !== undefined && (await isChanged(db, channel, changedAt))) return false;
  const { subscription, definition } = row;
  const isOfApi = definition !== null;
  if (isOfApi)
    await db
      .updateTable('subscriptions')
      .set({ state: 'gone' })
      .where('id', '=', subscription)
      .where('state', '=', 'active')
      .execute();
  await db
    .updateTable('channels')
    .set({ state: 'gone' })
    .where('state', '=', 'active')
    .where(isOfApi ? 'subscription' : 'id', '=', isOfApi ? subscription : channel)
    .execute();
  return true;
}

/** Whether the subscription of a channel was changed at another time than this, or is being deleted. */
export async function isChanged(db: Kysely<Schema>, channel: number, changedAt: number): Promise<boolean> {
  const row = await joinedChannels(db)
    .select('changed_at')
    .where('channels.id', '=', channel)
    .executeTakeFirst();
  return row?.changed_at !== changedAt;
}
