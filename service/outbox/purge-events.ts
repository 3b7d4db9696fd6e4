import { sql, type Kysely, type SqlBool } from 'kysely';
import { type Time, pause } from '../base/time';
import { untilNothingIsLeft } from '../database/batches';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import { toCloudEvent, tokenKeyOf, type RegistryIdentity } from '../events/cloud-event';
import type { RegistryEvent } from '../registry/registry-event';
import { channelKeysOf } from './channels';
import { lockFeed } from './feeds';
import { eventsAfter, idOf, insertEvents, keyIn, keysOfTokens, startOf } from './stored-events';

/** Events per transaction. Transactions are short because a running service waits for each. */
const BATCH = 100;

/**
 * Deletes a feed's events, with their attempts and queue positions, that were recorded and last sent before a
 * time (epoch milliseconds). These are kept, however old they are:
 *
 * - events not delivered: they wait, or are dead letters;
 * - events that a reorganisation could still orphan: their blocks come after the oldest kept block;
 * - events that a reorganisation orphaned: their rows are needed to recognise them when they are mined again,
 *   because subscribers, or those who fetch, may know their ids to be retracted;
 * - retractions of an event, and its rows under other ids, until a purge after that of the event: they show
 *   that a subscriber knows its id to be retracted.
 *
 * It pauses after each batch for as long as the batch took. If the signal aborts, it ends after the current
 * batch.
 *
 * @returns the number of deleted events.
 */
export async function purgeEvents(
  time: Time,
  { db }: Pick<Database, 'db'>,
  feed: string,
  before: number,
  signal?: AbortSignal,
): Promise<number> {
  let removed = 0;
  for await (const old of oldEvents(time, db, { feed, before, signal })) {
    if (signal?.aborted) break;
    removed += await remove(db, feed, old, before);
  }
  return removed;
}

/** Number of events that `purgeEvents` would delete. */
export async function countPurgeable(
  time: Time,
  db: Kysely<Schema>,
  feed: string,
  before: number,
): Promise<number> {
  const channels = await channelKeysOf(db, [feed]);
  let count = 0;
  for await (const { events } of oldEvents(time, db, { feed, before })) {
    const { done } = await db
      .selectFrom('events')
      .select((eb) => eb.fn.countAll().as('done'))
      .where('id', 'in', events)
      .where(isDone(channels, before))
      .executeTakeFirstOrThrow();
    count += Number(done);
  }
  return count;
}

/** The last block whose events were deleted. Undefined if none were. */
export async function purgedUpTo(db: Kysely<Schema>, feed: string): Promise<number | undefined> {
  const row = await db.selectFrom('feeds').select('purged_up_to').where('feed', '=', feed).executeTakeFirst();
  return row?.purged_up_to ?? undefined;
}

/** Old events of the feed with this key, and the oldest block that a reorganisation could reach. */
interface OldEvents {
  key: number;
  oldestKept: number;
  events: number[];
}

/**
 * Yields batches of old events in block order. Events are recorded in block order, so it ends at the first
 * batch that has no old event.
 */
async function* oldEvents(
  time: Time,
  db: Kysely<Schema>,
  { feed, before, signal }: { feed: string; before: number; signal?: AbortSignal | undefined },
): AsyncGenerator<OldEvents> {
  // No reorganisation goes further back than the oldest kept block.
  const read = await db
    .selectFrom('feeds')
    .innerJoin('blocks', 'blocks.feed', 'feeds.id')
    .select(['feeds.id', 'blocks.number as oldestKept'])
    .where('feeds.feed', '=', feed)
    .orderBy('blocks.number')
    .limit(1)
    .executeTakeFirst();
  if (read === undefined) return;
  for (let after = startOf(0); ;) {
    const start = time.elapsed();
    const batch = await eventsAfter(db, read.id, after)
      .where('block_number', '<=', read.oldestKept)
      .limit(BATCH)
      .execute();
    const old = batch.filter(({ recorded_at }) => recorded_at < before);
    if (old.length === 0) return;
    yield { key: read.id, oldestKept: read.oldestKept, events: old.map(idOf) };
    after = batch.at(-1) ?? after;
    await pause(time, time.elapsed() - start, signal);
  }
}

/** Deletes the events that may be deleted, and returns their number. */
async function remove(
  db: Kysely<Schema>,
  feed: string,
  { key, oldestKept, events }: OldEvents,
  before: number,
): Promise<number> {
  return db.transaction().execute(async (transaction) => {
    const purged = await lockFeed(transaction, key);
    const channels = await channelKeysOf(transaction, [feed]);
    const gone = await transaction
      .deleteFrom('events')
      .where('id', 'in', events)
      // An orphan may have been mined again since they were read.
      .where('block_number', '<=', oldestKept)
      .where(isDone(channels, before))
      .returning(['id', 'token', 'block_number', 'position'])
      .execute();
    if (gone.length === 0) return 0;
    const keys = gone.map(idOf);
    await transaction.deleteFrom('attempts').where('event', 'in', keys).execute();
    for (const channel of channels)
      await transaction
        .deleteFrom('deliveries')
        .where('channel', '=', channel)
        .where('token', 'in', [...new Set(gone.map(({ token }) => token))])
        .where('event', 'in', keys)
        .execute();
    const upTo = Math.max(purged.purged_up_to ?? 0, ...gone.map(({ block_number }) => block_number));
    const position = Math.max(purged.purged_position, ...gone.map((event) => event.position ?? 0));
    await sql`update feeds set purged_up_to = ${upTo}, purged_position = ${position}
      where id = ${key}`.execute(transaction);
    return gone.length;
  });
}

/**
 * One condition: between two statements, an event could leave its queue and become a dead letter, and both
 * would miss it.
 */
function isDone(channels: readonly number[], before: number) {
  // PostgreSQL refuses an empty list.
  const ofFeed = sql`in (${sql.join([0, ...channels])})`;
  return sql<SqlBool>`events.recorded_at < ${before}
    and (orphaned_at is null or original is not null)
    and not exists (select 1 from queues join deliveries
      on deliveries.channel = queues.channel and deliveries.token = queues.token and position >= head
      where queues.channel ${ofFeed} and queues.token = events.token and deliveries.event = events.id)
    and not exists (select 1 from dead_letters where channel ${ofFeed} and event = events.id)
    and not exists (select 1 from channels where id ${ofFeed} and fill_block is not null)
    and not exists (select 1 from attempts where event = events.id and attempted_at >= ${before})
    and not exists (select 1 from events as originals where originals.id = events.original)`;
}

/**
 * Stores events again that were removed because they were old, without enqueueing them. Events that are still
 * stored are left as they are.
 *
 * @param range its blocks are complete afterwards: the last removed event is then before `fromBlock`.
 * @returns false, and changes nothing, if the last removed event is not in the range: meanwhile others were
 *   removed or restored.
 */
export async function restoreEvents(
  { db }: Database,
  feed: number,
  registry: RegistryIdentity,
  range: { events: readonly RegistryEvent[]; fromBlock: number; toBlock: number },
  now: number,
): Promise<boolean> {
  return db.transaction().execute(async (transaction) => {
    const { fromBlock, toBlock } = range;
    const purgedUpTo = fromBlock > 0 ? fromBlock - 1 : null;
    const { numAffectedRows } = await sql`update feeds set purged_up_to = ${purgedUpTo}
      where id = ${feed} and purged_up_to between ${fromBlock} and ${toBlock}`.execute(transaction);
    if (numAffectedRows === 0n) return false;
    const stored = await transaction
      .selectFrom('events')
      .select(['block_number', 'log_index'])
      .where('feed', '=', feed)
      .where((eb) => eb.between('block_number', fromBlock, toBlock))
      // Orphans and retractions have the positions of blocks that were removed.
      .where('audience', '=', 'all')
      .where('orphaned_at', 'is', null)
      .execute();
    const known = new Set(stored.map(({ block_number, log_index }) => `${block_number}:${log_index}`));
    const missing = range.events.filter(
      ({ blockNumber, blockLogIndex }) => !known.has(`${blockNumber}:${blockLogIndex}`),
    );
    const tokens = await keysOfTokens(transaction, feed, missing.map(tokenKeyOf));
    const events = missing.map((event) => ({
      cloudEvent: toCloudEvent(event, registry),
      token: keyIn(tokens, tokenKeyOf(event)),
      at: event,
      // They are as old as others of their blocks: the removal of old events ends at the first that are not.
      recordedAt: Math.min(now, event.blockTimestamp * 1_000),
      // They were in the stream when they were recorded first.
      isUnfetched: true,
    }));
    await insertEvents(transaction, feed, events, now);
    return true;
  });
}

/** Queues per transaction. Transactions are short because a running service waits for each. */
const REMOVED_AT_ONCE = 500;

/** Deletes the queues of channels that do not exist any more. */
export async function removeQueues(
  { db, engine }: Database,
  channels: readonly number[],
  signal?: AbortSignal,
): Promise<void> {
  for (const channel of channels) {
    await db.deleteFrom('dead_letters').where('channel', '=', channel).execute();
    const removeSome = (): Promise<number> =>
      db.transaction().execute(async (transaction) => {
        // Queues are locked in the order of their keys, as in settle-queues.ts.
        const queues = await transaction
          .selectFrom('queues')
          .select('token')
          .where('channel', '=', channel)
          .orderBy('token')
          .limit(REMOVED_AT_ONCE)
          .$if(engine === 'postgres', (query) => query.forUpdate())
          .execute();
        if (queues.length === 0) return 0;
        const tokens = queues.map(({ token }) => token);
        for (const table of ['deliveries', 'queues'])
          await sql`delete from ${sql.table(table)}
            where channel = ${channel} and token in (${sql.join(tokens)})`.execute(transaction);
        return queues.length;
      });
    await untilNothingIsLeft(removeSome, signal);
  }
}

/** Deletes the queues that a process left when it died while it deleted a subscription. */
export async function removeLeftoverQueues(database: Database, signal?: AbortSignal): Promise<void> {
  const { db } = database;
  const withQueues: number[] = [];
  for (let last: number | null = 0; last !== null;) {
    // The index gives each channel's first row, however many it has.
    const { next } = await db
      .selectFrom('queues')
      .select((eb) => eb.fn.min<number | null>('channel').as('next'))
      .where('channel', '>', last)
      .executeTakeFirstOrThrow();
    last = next;
    if (next !== null) withQueues.push(next);
  }
  // Read after the queues: a channel that is missing by now was deleted, and its id is not used again.
  const channels = new Set((await db.selectFrom('channels').select('id').execute()).map(({ id }) => id));
  await removeQueues(
    database,
    withQueues.filter((channel) => !channels.has(channel)),
    signal,
  );
}
