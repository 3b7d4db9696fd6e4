import { sql, type Kysely, type Selectable, type Transaction } from 'kysely';
import type { Schema, SubscriptionsTable } from '../database/schema';
import { OPERATIONS } from '../events/conditions';
import { namesOperations, type Selection } from '../events/select-events';
import { ALL_SUBSCRIPTIONS, holdChanges, noteChange } from './changes';

/** The subscription of WEBHOOK_URL and service.config.json. */
export const DEFAULT_SUBSCRIPTION = 'default';

/** `fill_block` of a channel that gets all events: no block comes before block 0. */
export const FIRST_FILL = -1;

/** Adds the subscription `default` and the channels that are missing. */
export async function addChannels(db: Kysely<Schema>, now: number): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    // Waits for transactions that add subscriptions: they do not see the new feed.
    await holdChanges(transaction);
    await addDefault(transaction, now);
    if (await addMissingChannels(transaction)) await noteChange(transaction, ALL_SUBSCRIPTIONS);
  });
}

/**
 * Adds the channels that a subscription, or any, lacks: each has one for the feed of each registry. Returns
 * whether one was missing.
 */
export async function addMissingChannels(
  transaction: Transaction<Schema>,
  subscription?: number,
): Promise<boolean> {
  const wanted = subscription === undefined ? sql`` : sql`and subscriptions.id = ${subscription}`;
  // Not by a conflict alone: for PostgreSQL, each row that conflicts uses up a key.
  const { numAffectedRows } = await sql`insert into channels (subscription, feed, state)
    select subscriptions.id, feeds.id, subscriptions.state from subscriptions cross join feeds
    where feeds.feed <> ${OPERATIONS} ${wanted} and not exists (select 1 from channels
      where channels.subscription = subscriptions.id and channels.feed = feeds.id)
    on conflict do nothing`.execute(transaction);
  return numAffectedRows !== 0n;
}

/**
 * Adds the channel of operational events to a subscription whose `types` name some. It is never filled: the
 * conditions that hold already are in GET /health. Without such a subscription there is no feed for them.
 */
export async function addOperationsChannel(
  transaction: Transaction<Schema>,
  { id, definition, state }: Pick<Selectable<SubscriptionsTable>, 'id' | 'definition' | 'state'>,
  now: number,
): Promise<void> {
  if (!namesOperations(JSON.parse(definition ?? '{}') as Selection)) return;
  await sql`insert into feeds (feed, next_block, opened_at) values (${OPERATIONS}, 0, ${now})
    on conflict do nothing`.execute(transaction);
  // All of its events have block 0. A purge goes up to the oldest kept block.
  await sql`insert into blocks (feed, number) select id, 0 from feeds where feed = ${OPERATIONS}
    on conflict do nothing`.execute(transaction);
  await sql`insert into channels (subscription, feed, state)
    select ${id}, id, ${state} from feeds where feed = ${OPERATIONS}
    on conflict do nothing`.execute(transaction);
}

/** Adds the subscription `default` unless it exists. A new database has none until it is needed. */
export async function addDefault(transaction: Transaction<Schema>, now: number): Promise<void> {
  await sql`insert into subscriptions (name, created_at, changed_at)
    values (${DEFAULT_SUBSCRIPTION}, ${now}, ${now}) on conflict do nothing`.execute(transaction);
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
  const row = await findChannel(db, channel);
  if (row?.state !== 'active') return false;
  await noteChange(db, row.name);
  if (changedAt !== undefined && (await isChanged(db, channel, changedAt))) return false;
  const { subscription, definition } = row;
  await sql`update subscriptions set state = 'gone'
    where id = ${subscription} and state = 'active' and definition is not null`.execute(db);
  const stopped = definition === null ? sql`id = ${channel}` : sql`subscription = ${subscription}`;
  await sql`update channels set state = 'gone' where state = 'active' and ${stopped}`.execute(db);
  return true;
}

/** A channel with its feed and its subscription. Undefined while the subscription is being deleted. */
export async function findChannel(db: Kysely<Schema>, channel: number) {
  return joinedChannels(db)
    .select(['feeds.feed', 'channels.state', 'channels.subscription'])
    .select(['subscriptions.name', 'subscriptions.definition', 'subscriptions.changed_at'])
    .where('channels.id', '=', channel)
    .executeTakeFirst();
}

/** Whether the subscription of a channel was changed at another time than this, or is being deleted. */
export async function isChanged(db: Kysely<Schema>, channel: number, changedAt: number): Promise<boolean> {
  return (await findChannel(db, channel))?.changed_at !== changedAt;
}
