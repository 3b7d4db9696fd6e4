import { sql, type Transaction } from 'kysely';
import { traceOfEvent } from '../base/trace';
import { compiled } from '../database/compiled';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import { recipientsOf, type Recipients } from './recipients';
import {
  type CloudEvent,
  eventIdOf,
  type RegistryIdentity,
  RETRACTED_TYPE,
  toCloudEvent,
  tokenKeyOf,
} from '../events/cloud-event';
import { lastEntriesOf, retractedAmong, unusedIds } from './announcements';
import {
  attemptsOf,
  bytesOfId,
  channelsByEvent,
  enqueue,
  idOf,
  insertEvents,
  keyIn,
  keysOfTokens,
  type Enqueued,
  type NewEvent,
} from './stored-events';
import { keepBlocks, moveCursor, type KeptBlock, type OpenFeed } from './feeds';

/** A range of blocks that was read, with its events. */
export interface RecordedRange {
  events: readonly RegistryEvent[];
  /** The blocks whose hashes are kept: those with events, and the last. Ascending. */
  blocks: readonly KeptBlock[];
  /** Kept blocks before this one are deleted. */
  oldestKept: number;
  nextBlock: number;
}

/** The events of blocks that were read before: the cursor stays. */
export type ReadAgain = Pick<RecordedRange, 'events'> & { nextBlock?: never };

/** The number of events that are new, or may be, and the channels that events were queued for. */
export interface Recorded {
  added: number;
  channels: readonly number[];
}

/**
 * Stores the events of a range, queues them for the channels that want them, and moves the cursor, all in one
 * transaction. An event that is already stored is left as it is. An event that was delivered before a
 * reorganisation is recognised, and queued only for channels to which it was not delivered. For a channel
 * where it was retracted, it is queued under a new id.
 */
export async function recordRange(
  database: Database,
  open: OpenFeed,
  registry: RegistryIdentity,
  range: RecordedRange | ReadAgain,
  now: number,
): Promise<Recorded> {
  const { id: feed } = open;
  return database.db.transaction().execute(async (transaction) => {
    await moveCursor(transaction, open, range.nextBlock);
    if (range.nextBlock !== undefined) await keepBlocks(transaction, feed, range.blocks, range.oldestKept);
    if (range.events.length === 0) return { added: 0, channels: [] };
    const recipients = await recipientsOf(database, transaction, feed);
    const tokens = await keysOfTokens(transaction, feed, range.events.map(tokenKeyOf));
    const orphans = await orphansOf(transaction, feed, recipients);
    const events = recognise(range.events, orphans, registry, tokens);
    const rows = await rowsToStore(transaction, { feed, registry }, events);
    const inserted = await insertEvents(transaction, feed, rows, now);
    const entries: Enqueued[] = [];
    let added = 0;
    for (const [index, event] of events.entries()) {
      const { orphan, cloudEvent } = event;
      const id = rows[index]?.cloudEvent.id ?? '';
      const again = orphan && keyIn(inserted, id);
      const key = orphan?.key ?? inserted.get(id);
      // It was stored before.
      if (key === undefined) continue;
      if (orphan) await mineAgain(transaction, { feed, orphan, again }, event, now);
      entries.push(...entriesFor({ ...event, key, again }, recipients.channelsFor(cloudEvent)));
      if (event.orphan === undefined || event.orphan.deliveredTo.size === 0) added++;
    }
    // One call locks the queues of the whole range in the order of their keys.
    await enqueue(transaction, entries, now);
    return { added, channels: [...new Set(entries.map(({ channel }) => channel))] };
  });
}

/** An event of the chain, as it is sent. `orphan`: the stored event that it is again. */
interface Recognised extends NewEvent {
  at: RegistryEvent;
  cloudEvent: CloudEvent;
  orphan: Orphan | undefined;
}

/**
 * The entries of an event in the queues of the channels that want it. A channel that has it already gets
 * none, and one for which it was retracted gets the further announcement.
 *
 * @param event `key`: of its row; `again`: where it was orphaned, of the row that announces it again.
 */
export function entriesFor(
  event: Pick<Recognised, 'token' | 'orphan'> & { key: number; again: number | undefined },
  channels: readonly number[],
): Enqueued[] {
  const { token, orphan, key, again } = event;
  return channels.flatMap((channel) => {
    if (orphan?.retractedFor.has(channel)) return again === undefined ? [] : { channel, token, event: again };
    return orphan?.deliveredTo.has(channel) ? [] : { channel, token, event: key };
  });
}

const NONE: ReadonlySet<number> = new Set();

/**
 * Marks an orphan as on the chain again, and replaces its body: a channel may receive it later. One that is
 * not in the stream takes the place of its further announcement, which is then needless.
 */
async function mineAgain(
  db: Transaction<Schema>,
  { feed, orphan, again }: { feed: number; orphan: Orphan; again: number | undefined },
  { at: { blockNumber, blockHash, blockLogIndex, trace }, cloudEvent }: Recognised,
  now: number,
): Promise<void> {
  const place = orphan.isInStream
    ? undefined
    : await db
        .deleteFrom('events')
        .where('id', '=', again ?? 0)
        .returning('position')
        .executeTakeFirst();
  await db
    .updateTable('events')
    .set({
      orphaned_at: null,
      block_number: blockNumber,
      block_hash: blockHash,
      log_index: blockLogIndex,
      body: JSON.stringify(cloudEvent),
      ...place,
      ...(!orphan.isAttempted && { recorded_at: now, trace: trace ?? traceOfEvent(cloudEvent.id) }),
    })
    .where('id', '=', orphan.key)
    .execute();
  await sql`update orphans set mined_again_in = ${blockNumber}
    where feed = ${feed} and event_id = ${bytesOfId(cloudEvent.id)}
      and outcome = 'delivered' and mined_again_in is null`.execute(db);
}

/** An event whose block was orphaned. Subscribers, or those who fetch, may have it. */
export interface Orphan {
  /** Key of its row. */
  key: number;
  /** As it was sent. */
  sent: CloudEvent;
  isAttempted: boolean;
  /** Before migration 0019, orphans were taken back only where they were sent. The others left the stream. */
  isInStream: boolean;
  /** The channels to which an attempt is known to have succeeded. */
  deliveredTo: ReadonlySet<number>;
  /** The channels in which its last entry is a retraction, sent or waiting. */
  retractedFor: ReadonlySet<number>;
}

/**
 * Finds the events that were already sent before a reorganisation orphaned their block and their transaction
 * was mined again. They usually have the same ids. A transaction may emit different logs in the new block,
 * however, and earlier versions derived ids from positions in blocks. Events are therefore matched by content
 * as well.
 *
 * - An event is not sent a second time to a channel to which it was delivered, unless it was retracted there:
 *   it is then announced again (see `rowsToStore`).
 * - An event that may have been received is sent with the id and the log index it was sent with before. If
 *   another event now has that log index, it is sent with its own: subscribers who deduplicate by transaction
 *   and log index would otherwise drop one of the two.
 * - If a new event has the position of an orphan with other content, its regular id is taken and subscribers
 *   would drop it as a duplicate. Its id is then derived from the block hash as well.
 */
function recognise(
  events: readonly RegistryEvent[],
  orphans: readonly Orphan[],
  registry: RegistryIdentity,
  tokens: ReadonlyMap<string, number>,
): Recognised[] {
  const regular = events.map((at) => ({ at, cloudEvent: toCloudEvent(at, registry) }));
  const matches = match(regular, orphans);
  const usedIds = new Set(orphans.map(({ sent }) => sent.id));
  const places = new Set(events.map(placeOf));
  return regular.map(({ at, cloudEvent }) => {
    const token = keyIn(tokens, tokenKeyOf(at));
    const orphan = matches.get(at);
    if (orphan) {
      const asBefore = { ...at, logIndex: orphan.sent.data.logIndex };
      const asSent = places.has(placeOf(asBefore)) ? at : asBefore;
      return { at, cloudEvent: toCloudEvent(asSent, registry, orphan.sent.id), token, orphan };
    }
    if (!usedIds.has(cloudEvent.id)) return { at, cloudEvent, token, orphan };
    const unused = eventIdOf(registry.chainId, at, at.blockHash);
    return { at, cloudEvent: toCloudEvent(at, registry, unused), token, orphan };
  });
}

/**
 * Finds each event's orphan, if any. An event may be an orphan twice: earlier versions gave it a new id in
 * each block. The delivered one takes precedence: the subscriber knows the event. Matches by id come before
 * those by content, so that identical logs of one transaction each get their own orphan.
 */
function match(
  events: readonly Pick<Recognised, 'at' | 'cloudEvent'>[],
  orphans: readonly Orphan[],
): ReadonlyMap<RegistryEvent, Orphan> {
  const matches = new Map<RegistryEvent, Orphan>();
  const left = new Map<string, Orphan[]>();
  for (const orphan of orphans) {
    const content = contentOf(orphan.sent);
    left.set(content, [...(left.get(content) ?? []), orphan]);
  }
  for (const isDelivered of orphans.length > 0 ? [true, false] : [])
    for (const isById of [true, false])
      for (const { at, cloudEvent } of events) {
        const candidates = matches.has(at) ? [] : (left.get(contentOf(cloudEvent)) ?? []);
        const index = candidates.findIndex(
          ({ deliveredTo, sent }) =>
            deliveredTo.size > 0 === isDelivered && (!isById || sent.id === cloudEvent.id),
        );
        const [orphan] = index < 0 ? [] : candidates.splice(index, 1);
        if (orphan) matches.set(at, orphan);
      }
  return matches;
}

/**
 * The rows to store, in chain order: each new event, and a further announcement of each one that is on the
 * chain again. Its id is new, because a subscriber drops an event whose id it knows to be retracted.
 */
async function rowsToStore(
  db: Transaction<Schema>,
  { feed, registry }: { feed: number; registry: RegistryIdentity },
  events: readonly Recognised[],
): Promise<NewEvent[]> {
  const again = events.filter(({ orphan }) => orphan !== undefined);
  const wanted = again.map(({ at }) => eventIdOf(registry.chainId, at, at.blockHash));
  const ids = await unusedIds(db, feed, wanted);
  const idOfEvent = new Map(again.map((event, index) => [event, ids[index]]));
  return events.map((event) => {
    const { at, orphan, token } = event;
    if (orphan === undefined) return event;
    const audience = orphan.retractedFor.size > 0 ? ('retracting' as const) : ('fetching' as const);
    const cloudEvent = toCloudEvent(at, registry, idOfEvent.get(event));
    return { at, cloudEvent, token, original: orphan.key, audience };
  });
}

function placeOf({ transactionHash, logIndex }: RegistryEvent): string {
  return `${transactionHash}:${logIndex}`;
}

const orphanedRows = compiled((db, { feed }: { feed: number }) =>
  db
    .selectFrom('events')
    .select(['id', 'token', 'body', 'position'])
    .where('feed', '=', feed)
    .where('orphaned_at', 'is not', null)
    .where('audience', '=', 'all')
    .orderBy('log_index'),
);

/** Reads the orphans. There are few, and an index covers just these rows. */
async function orphansOf(
  db: Transaction<Schema>,
  feed: number,
  { rules }: Pick<Recipients, 'rules'>,
): Promise<Orphan[]> {
  const { rows } = await orphanedRows(db, { feed });
  if (rows.length === 0) return [];
  const attempts = await attemptsOf(db, rows.map(idOf));
  const deliveredTo = channelsByEvent(attempts.filter(({ isDelivered }) => isDelivered));
  const candidates = await retractedAmong(db, rows);
  const entries = await lastEntriesOf(
    db,
    [...rules.keys()],
    rows.filter(({ id }) => candidates.has(id)),
  );
  const retractions = entries.filter(({ type }) => type === RETRACTED_TYPE);
  const retractedFor = channelsByEvent(retractions.map((one) => ({ ...one, event: one.original })));
  const attempted = new Set(attempts.map(({ event }) => event));
  return rows.map(({ id, body, position }) => ({
    key: id,
    sent: JSON.parse(body) as CloudEvent,
    isAttempted: attempted.has(id),
    isInStream: position !== null,
    deliveredTo: deliveredTo.get(id) ?? NONE,
    retractedFor: retractedFor.get(id) ?? NONE,
  }));
}

/**
 * The event's content, independent of its position. The decoder always emits the payload's fields in the same
 * order.
 */
function contentOf({ type, data: { transactionHash, tokenId, payload } }: CloudEvent): string {
  return JSON.stringify([transactionHash, type, tokenId, payload]);
}
