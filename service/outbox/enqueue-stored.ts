import { sql, type SelectQueryBuilder, type Transaction } from 'kysely';
import type { RegistryName } from '../base/registry-name';
import { untilNothingIsLeft } from '../database/batches';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { presentAnnouncements } from './announcements';
import { channelsOf } from './channels';
import { recipientsOf, type Recipients } from './recipients';
import { findDeliveredFeeds, findFeeds, lockFeed, registryOfFeed } from './feeds';
import { endPauses } from './claim-queues';
import type { CloudEvent } from '../events/cloud-event';
import {
  attemptsOf,
  bytesOfId,
  enqueue,
  eventsAfter,
  forgetLetters,
  HIGHEST_KEY,
  idOf,
  startOf,
  waitingDeliveries,
  type EventRow,
  type Place,
} from './stored-events';

// Stored events are enqueued when they are sent again, and for a subscription that begins in the past.

/** The events to send again. */
export type Selection = { eventId: string } | { dead: true } | { fromBlock: number };

/** How many events of a registry, or operational ones, were queued again, and how many waited already. */
export interface Redelivered {
  registry: RegistryName;
  queued: number;
  alreadyWaiting: number;
}

/**
 * Sends events to a subscription again, as `redeliver` does, from the feed of each registry and from that of
 * operational events, or only from the one given (see `findDeliveredFeeds`).
 */
export async function redeliverTo(
  database: Database,
  { subscription, registry }: { subscription: string; registry?: string | undefined },
  selection: Selection,
  now: number,
): Promise<Redelivered[]> {
  const { db } = database;
  const redelivered: Redelivered[] = [];
  // Operational events are of no block.
  for (const feed of await ('fromBlock' in selection ? findFeeds : findDeliveredFeeds)(db, registry)) {
    const [channel] = await channelsOf(db, feed, subscription);
    if (channel === undefined) continue;
    const counts = await redeliver(database, channel, selection, now);
    redelivered.push({ registry: registryOfFeed(feed), ...counts });
  }
  return redelivered;
}

/** Events per transaction. Transactions are short because a running service waits for each. */
const BATCH = 200;

/**
 * Appends events to a channel's token queues again, in chain order, with the ids that were sent before.
 * Events that the subscription does not want, or whose blocks were orphaned, are not sent again. An event
 * that was retracted and announced again is sent as it was announced last. An event that waits ends the pause
 * of its token's queue.
 *
 * @returns the number of events queued again, and of those that were already waiting.
 */
export async function redeliver(
  database: Database,
  { feed, channel }: { feed: number; channel: number },
  selection: Selection,
  now: number,
): Promise<Omit<Redelivered, 'registry'>> {
  const total = { queued: 0, alreadyWaiting: 0 };
  let after = startOf('fromBlock' in selection ? selection.fromBlock : 0);
  await untilNothingIsLeft(async () => {
    const events = await database.db.transaction().execute(async (transaction) => {
      // In this order, as when a condition is told: any other could deadlock in the feed of these events.
      const recipients = await recipientsOf(database, transaction, feed);
      await lockFeed(transaction, feed);
      const found = await selected(transaction, { feed, channel }, selection, after);
      const present = 'dead' in selection ? found : await presentOf(transaction, channel, found);
      const wanted = present.filter((event) => isFor(recipients, channel, selection, event));
      const waiting = await keysAmong(wanted, channel, waitingDeliveries(transaction));
      const due = wanted.filter(({ id }) => !waiting.has(id));
      const queued = due.map(({ id, token }) => ({ channel, token, event: id }));
      await enqueue(transaction, queued, now);
      // An event that waited when it was looked for may have become a dead letter meanwhile.
      await forgetLetters(transaction, channel, due.map(idOf));
      const tokens = wanted.flatMap(({ id, token }) => (waiting.has(id) ? token : []));
      if (tokens.length > 0) await endPauses(database, transaction, { channel, tokens, now });
      total.queued += due.length;
      total.alreadyWaiting += waiting.size;
      return found;
    });
    after = events.at(-1) ?? after;
    return events.length;
  });
  return total;
}

/** The rows to send. Retractions, and events under a further id, go only to channels that had them before. */
async function presentOf(
  db: Transaction<Schema>,
  channel: number,
  events: readonly EventRow[],
): Promise<EventRow[]> {
  const originals = events.filter(({ audience }) => audience === 'all');
  const others = events.filter(({ audience }) => audience === 'retracting');
  const queued = await keysAmong(others, channel, db.selectFrom('deliveries'));
  const present = await presentAnnouncements(db, channel, originals);
  return [...present, ...others.filter(({ id }) => queued.has(id))];
}

/** The keys of those events that are among the deliveries of a channel. */
async function keysAmong(
  events: readonly EventRow[],
  channel: number,
  deliveries: SelectQueryBuilder<Schema, 'deliveries', object>,
): Promise<ReadonlySet<number>> {
  if (events.length === 0) return new Set();
  const rows = await deliveries
    .select('deliveries.event')
    .where('deliveries.channel', '=', channel)
    .where('deliveries.token', 'in', [...new Set(events.map(({ token }) => token))])
    .where('deliveries.event', 'in', events.map(idOf))
    .execute();
  return new Set(rows.map(({ event }) => event));
}

/**
 * The channel wanted its dead letters when they were recorded. While it is being filled, other events wait.
 */
function isFor(
  { rules, filling }: Recipients,
  channel: number,
  selection: Selection,
  event: EventRow,
): boolean {
  const recipient = rules.get(channel);
  if (recipient === undefined) return false;
  if ('dead' in selection || event.audience === 'retracting') return true;
  return !filling.has(channel) && recipient.wants(JSON.parse(event.body) as CloudEvent);
}

async function selected(
  db: Transaction<Schema>,
  { feed, channel }: { feed: number; channel: number },
  selection: Selection,
  after: Place,
): Promise<EventRow[]> {
  return eventsAfter(db, feed, after)
    .where('orphaned_at', 'is', null)
    .where((eb) => {
      if ('eventId' in selection) return eb('event_id', '=', bytesOfId(selection.eventId));
      if ('fromBlock' in selection) return eb('audience', '=', 'all');
      return eb('id', 'in', eb.selectFrom('dead_letters').select('event').where('channel', '=', channel));
    })
    .limit(BATCH)
    .execute();
}

/**
 * Enqueues the next stored events for a channel that is being filled. Events that are recorded meanwhile are
 * enqueued after these: recording leaves them to later calls.
 *
 * @returns `filled` when all stored events are enqueued: from then on events are enqueued when they are
 *   recorded. `purged` if events of the channel must be read from the chain first, up to the block `upTo`.
 */
export async function fillChannel(
  database: Database,
  { feed, channel }: { feed: number; channel: number },
  now: number,
): Promise<'more' | 'filled' | { purged: { fromBlock: number; upTo: number } }> {
  return database.db.transaction().execute(async (transaction) => {
    const { purged_up_to: purgedUpTo } = await lockFeed(transaction, feed);
    const cursor = await transaction
      .selectFrom('channels')
      .select(['fill_block', 'fill_index'])
      .where('id', '=', channel)
      .executeTakeFirst();
    if (cursor === undefined || cursor.fill_block === null) return 'filled';
    const { fill_block: block, fill_index: index } = cursor;
    const fromBlock = index === null ? block + 1 : block;
    if (purgedUpTo !== null && fromBlock <= purgedUpTo) return { purged: { fromBlock, upTo: purgedUpTo } };
    const after =
      index === null ? startOf(fromBlock) : { block_number: block, log_index: index, id: HIGHEST_KEY };
    const events = await eventsAfter(transaction, feed, after)
      .where('orphaned_at', 'is', null)
      .where('audience', '=', 'all')
      .limit(BATCH)
      .execute();
    const { rules } = await recipientsOf(database, transaction, feed);
    const wanted = events.filter(({ body }) => rules.get(channel)?.wants(JSON.parse(body) as CloudEvent));
    const present = await presentAnnouncements(transaction, channel, wanted);
    // A reorganisation may have taken the channel back to blocks with transactions that were mined again.
    const attempts = await attemptsOf(transaction, present.map(idOf), channel);
    const delivered = new Set(attempts.flatMap(({ event, isDelivered }) => (isDelivered ? event : [])));
    const due = present.filter(({ id }) => !delivered.has(id));
    const queued = due.map(({ id, token }) => ({ channel, token, event: id }));
    await enqueue(transaction, queued, now);
    const last = events.length < BATCH ? undefined : events.at(-1);
    await sql`update channels
      set fill_block = ${last?.block_number ?? null}, fill_index = ${last?.log_index ?? null}
      where id = ${channel}`.execute(transaction);
    return last === undefined ? 'filled' : 'more';
  });
}
