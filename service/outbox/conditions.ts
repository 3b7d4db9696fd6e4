import { sql, type Kysely, type Transaction } from 'kysely';
import type { OperationSuffix } from '../../client/events';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import {
  aboutFeed,
  beginOf,
  endOf,
  OPERATIONS,
  operationalEventOf,
  subjectOfSubscription,
  type Condition,
} from '../events/conditions';
import { wantsOperation, type Selection } from '../events/select-events';
import { holdChanges } from './changes';
import { channelKeysOf, channelsOf, DEFAULT_SUBSCRIPTION, findChannel, joinedChannels } from './channels';
import type { Attempted } from './claim-queues';
import { registryOfFeed } from './feeds';
import { enqueue, insertEvents, keyIn, keysOfTokens } from './stored-events';

/** A condition, and the part of the service that sees it. */
export interface SeenCondition extends Condition {
  readonly observer: string;
}

/** The conditions that an observer sees now. Those of the kinds in `unknown` may hold, or not. */
export interface Sight {
  readonly conditions: readonly Condition[];
  readonly unknown?: readonly Condition['what'][];
}

/** The differences between what an observer saw before, and what it sees now. */
export interface ConditionChanges {
  begun: Condition[];
  ended: Condition[];
  /** Those with other details than before. */
  changed: Condition[];
}

/**
 * Conditions that begin, or end, in one transaction: no event is recorded meanwhile. The rest follows the
 * next time.
 */
const MOST_AT_ONCE = 100;

/** Reads all conditions, the oldest first. */
export async function readConditions(db: Kysely<Schema>): Promise<SeenCondition[]> {
  const rows = await db
    .selectFrom('conditions')
    .selectAll()
    .orderBy('since')
    .orderBy('subject')
    .orderBy('what')
    .execute();
  return rows.map(({ what, detail, ...row }) => ({
    ...row,
    what: what as Condition['what'],
    detail: JSON.parse(detail) as Condition['detail'],
  }));
}

/** Longer than what fits into the pages that a database has already. */
const TRIAL = { what: 'trial', subject: '', observer: '', since: 0, detail: ' '.repeat(8_192) };

/** Stores something, and removes it in the same transaction. Rejects while nothing can be stored. */
export async function tryStoring(db: Kysely<Schema>): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await transaction.insertInto('conditions').values(TRIAL).execute();
    await forgetConditions(transaction, 'observer', TRIAL.observer);
  });
}

/** The conditions of several observers, each once. */
export function distinctConditions(seen: readonly SeenCondition[]): SeenCondition[] {
  return [...new Map(seen.toReversed().map((one) => [keyOf(one), one])).values()].reverse();
}

/**
 * Stores what an observer sees, and queues the events that tell of it, in one transaction. Nothing is written
 * if nothing changed, or if others changed the observer's conditions since `seen` was read.
 *
 * @param seen all conditions, as they were read before the sight.
 * @returns the changes that were stored.
 */
export async function noteSight(
  { db }: Pick<Database, 'db'>,
  observer: string,
  { sight, seen, now }: { sight: Sight; seen: readonly SeenCondition[]; now: number },
): Promise<ConditionChanges> {
  const changes = changesBetween(seen, observer, sight);
  if (changes.begun.length + changes.ended.length + changes.changed.length === 0) return changes;
  return db.transaction().execute(async (transaction) => {
    await holdChanges(transaction);
    // The sight is older than what was stored meanwhile, for example when a sink answered with 410. The next
    // one is not.
    if (storedBy(observer, await readConditions(transaction)) !== storedBy(observer, seen)) return NOTHING;
    const begun = changes.begun.slice(0, MOST_AT_ONCE);
    for (const condition of begun) await begin(transaction, { ...condition, observer }, now);
    for (const { what, subject, detail } of changes.changed)
      await sql`update conditions set detail = ${JSON.stringify(detail)}
        where what = ${what} and subject = ${subject} and observer = ${observer}`.execute(transaction);
    // An end is not told before the condition that follows on it has begun.
    const ended = changes.begun.length > begun.length ? [] : changes.ended.slice(0, MOST_AT_ONCE);
    for (const condition of ended) await end(transaction, { ...condition, observer }, now);
    return { ...changes, begun, ended };
  });
}

const NOTHING: ConditionChanges = { begun: [], ended: [], changed: [] };

/** The conditions of an observer, to be compared. */
function storedBy(observer: string, seen: readonly SeenCondition[]): string {
  return JSON.stringify(seen.filter((one) => one.observer === observer));
}

function changesBetween(
  seen: readonly SeenCondition[],
  observer: string,
  { conditions, unknown = [] }: Sight,
): ConditionChanges {
  const before = new Map(seen.flatMap((one) => (one.observer === observer ? [[keyOf(one), one]] : [])));
  const after = new Map(conditions.map((one) => [keyOf(one), one]));
  const isOther = (one: Condition): boolean => {
    const earlier = before.get(keyOf(one));
    return earlier !== undefined && JSON.stringify(earlier.detail) !== JSON.stringify(one.detail);
  };
  return {
    begun: [...after.values()].filter((one) => !before.has(keyOf(one))),
    ended: [...before.values()].filter((one) => !after.has(keyOf(one)) && !unknown.includes(one.what)),
    changed: [...after.values()].filter(isOther),
  };
}

function keyOf({ what, subject }: Pick<Condition, 'what' | 'subject'>): string {
  return `${what} ${subject}`;
}

/** Removes conditions without an event: their subject, or their observer, is not there any more. */
export async function forgetConditions(
  db: Kysely<Schema>,
  of: 'subject' | 'observer',
  name: string,
): Promise<void> {
  await db.deleteFrom('conditions').where(of, '=', name).execute();
}

/** Stores a condition. Its event is queued unless another observer sees the condition already. */
async function begin(db: Transaction<Schema>, condition: SeenCondition, now: number): Promise<void> {
  const { what, subject, observer, since, detail } = condition;
  const isKnown = await isSeen(db, subject, (kind) => kind === what);
  await sql`insert into conditions (what, subject, observer, since, detail)
    values (${what}, ${subject}, ${observer}, ${since}, ${JSON.stringify(detail)})
    on conflict do nothing`.execute(db);
  if (observer !== OPERATIONS && !isKnown) await tell(db, beginOf(what), condition, now);
}

/**
 * Removes a condition. The event of its end is queued unless another observer still sees the condition, or
 * another one of the same subject has followed on it.
 */
async function end(db: Transaction<Schema>, condition: SeenCondition, now: number): Promise<void> {
  const { what, subject, observer } = condition;
  await sql`delete from conditions
    where what = ${what} and subject = ${subject} and observer = ${observer}`.execute(db);
  const suffix = endOf(what);
  if (observer === OPERATIONS || suffix === undefined) return;
  if (!(await isSeen(db, subject, (kind) => endOf(kind) === suffix))) await tell(db, suffix, condition, now);
}

/** Whether a condition of the subject is seen. Trouble with the sinks of operational events is not told. */
async function isSeen(
  db: Transaction<Schema>,
  subject: string,
  isSuch: (what: Condition['what']) => boolean,
): Promise<boolean> {
  const seen = await db
    .selectFrom('conditions')
    .select('what')
    .where('subject', '=', subject)
    .where('observer', '<>', OPERATIONS)
    .execute();
  return seen.some(({ what }) => isSuch(what as Condition['what']));
}

/** Queues an event for the subscriptions that name its type. None is told of trouble with its own sink. */
async function tell(
  db: Transaction<Schema>,
  suffix: OperationSuffix | undefined,
  condition: Omit<Condition, 'what'>,
  now: number,
): Promise<void> {
  if (suffix === undefined) return;
  const { subject } = condition;
  const event = operationalEventOf(suffix, condition, now);
  // Their rules are not cached: a transaction that changes subscriptions may read them before its end.
  const channels = await channelsOf(db, OPERATIONS);
  const wanting = channels.filter(
    ({ subscription, definition }) =>
      subjectOfSubscription(subscription) !== subject &&
      wantsOperation(JSON.parse(definition ?? '{}') as Selection, event.type),
  );
  const [first] = wanting;
  if (first === undefined) return;
  const token = keyIn(await keysOfTokens(db, first.feed, [subject]), subject);
  const at = { blockNumber: 0, blockHash: '', blockLogIndex: 0 };
  const [key] = (await insertEvents(db, first.feed, [{ cloudEvent: event, token, at }], now)).values();
  // It was told before.
  if (key === undefined) return;
  const queued = wanting.map(({ channel }) => ({ channel, token, event: key }));
  await enqueue(db, queued, now);
}

/**
 * Ends the trouble of a subscription with its sink, in the transaction that resumes it. Call
 * `holdChanges` or `noteChange` before.
 */
export async function endTrouble(db: Transaction<Schema>, subscription: string, now: number): Promise<void> {
  const subject = subjectOfSubscription(subscription);
  for (const condition of await readConditions(db))
    if (condition.subject === subject && endOf(condition.what) === 'subscription_recovered')
      await end(db, condition, now);
}

/**
 * Tells that the sink of a channel is gone, or that events of it were given up, in the transaction in which
 * that happens. Call `holdChanges` before queues are locked.
 */
export async function tellOfChannel(
  db: Transaction<Schema>,
  channel: number,
  { isGone, letters }: { isGone: boolean; letters: readonly Attempted[] },
  now: number,
): Promise<void> {
  if (!isGone && letters.length === 0) return;
  const row = await findChannel(db, channel);
  // The subscription is being deleted.
  if (row === undefined) return;
  const { feed, name: subscription } = row;
  const observer = registryOfFeed(feed);
  const detail = { subscription };
  const about = { observer, subject: subjectOfSubscription(subscription), since: now, detail };
  if (isGone) await begin(db, { what: 'subscription_gone', ...about }, now);
  if (letters.length > 0) await begin(db, { what: 'dead_letters', ...about }, now);
  if (feed === OPERATIONS) return;
  for (const { delivery, attempt } of letters) {
    const { eventId: event, type: eventType, attempt: attempts } = delivery;
    const detail = { subscription, event, eventType, attempts, status: attempt.status, error: attempt.error };
    await tell(db, 'dead_letter', { ...about, detail }, now);
  }
}

/** Limits for the conditions of channels. Epoch milliseconds. */
export interface ChannelLimits {
  /** Failures that began at this time or earlier are slow, or failing. */
  slowBefore: number;
  failingBefore: number;
  now: number;
}

/**
 * The conditions of the subscriptions that feeds are delivered to. The number of statements does not depend
 * on the number of feeds that have a webhook.
 *
 * @param feeds whether the settings have a webhook for each feed: without one there is no `default`.
 */
export async function conditionsOfChannels(
  db: Kysely<Schema>,
  feeds: ReadonlyMap<string, boolean>,
  { slowBefore, failingBefore, now }: ChannelLimits,
): Promise<ReadonlyMap<string, Condition[]>> {
  const withLetters = sql<boolean>`exists (select 1 from dead_letters where channel = channels.id)`;
  const channels = await joinedChannels(db)
    .select(['feeds.feed', 'channels.state', 'failing_since as failingSince'])
    .select(['subscriptions.name as subscription', withLetters.as('hasLetters')])
    .where('feeds.feed', 'in', [...feeds.keys()])
    .where((eb) =>
      eb.or([eb('channels.state', '<>', 'active'), eb('failing_since', '<=', slowBefore), withLetters]),
    )
    .execute();
  const found = new Map([...feeds.keys()].map((feed): [string, Condition[]] => [feed, []]));
  for (const { feed, state, failingSince, subscription, hasLetters } of channels) {
    if (subscription === DEFAULT_SUBSCRIPTION && !feeds.get(feed)) continue;
    const add = (what: Condition['what'], since: number): void => {
      const subject = subjectOfSubscription(subscription);
      found.get(feed)?.push({ what, subject, since, detail: { subscription } });
    };
    const isSlow = failingSince !== null && failingSince <= slowBefore;
    if (state !== 'active') add(`subscription_${state}`, now);
    else if (isSlow)
      add(failingSince <= failingBefore ? 'subscription_failing' : 'subscription_slow', failingSince);
    if (hasLetters) add('dead_letters', now);
  }
  for (const [feed, hasWebhook] of feeds)
    if (!hasWebhook && (await isUnreceived(db, feed)))
      found.get(feed)?.push({ what: 'feed_unreceived', ...aboutFeed(registryOfFeed(feed)), since: now });
  return found;
}

/** Whether events wait, and there is no subscription. */
async function isUnreceived(db: Kysely<Schema>, feed: string): Promise<boolean> {
  const subscriptions = await db
    .selectFrom('subscriptions')
    .select('id')
    .where('definition', 'is not', null)
    .limit(1)
    .execute();
  const channels = subscriptions.length > 0 ? [] : await channelKeysOf(db, [feed]);
  if (channels.length === 0) return false;
  const waiting = await db
    .selectFrom('queues')
    .select('token')
    .where('channel', 'in', channels)
    // Lets SQLite use the index of queues that are not empty.
    .where('next_attempt_at', '>=', 0)
    .limit(1)
    .execute();
  return waiting.length > 0;
}
