import type { Transaction } from 'kysely';
import { compiled } from '../database/compiled';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import { recipientsOf } from './recipients';
import {
  type CloudEvent,
  eventIdOf,
  type RegistryIdentity,
  RETRACTED_TYPE,
  toCloudEvent,
  tokenKeyOf,
  typeOf,
} from '../events/cloud-event';
import { lastEntriesOf, retractedAmong, unusedIds } from './announcements';
import {
  attemptsOf,
  bytesOfId,
  channelsByEvent,
  enqueue,
  idOf,
  idOfBytes,
  insertEvents,
  keyIn,
  keysOfTokens,
  type Enqueued,
} from './stored-events';
import { keepBlocks, moveCursor, type KeptBlock, type OpenFeed } from './feeds';

/** A range of blocks that was read, with its events. */
interface RecordedRange {
  events: RegistryEvent[];
  /** The blocks whose hashes are kept: those with events, and the last. Ascending. */
  blocks: KeptBlock[];
  /** Kept blocks before this one are deleted. */
  oldestKept: number;
  nextBlock: number;
}

/** The events of blocks that were read before: the cursor stays. */
type ReadAgain = Pick<RecordedRange, 'events'> & { nextBlock?: never };

/**
 * Stores the events of a range, queues them for the channels that want them, and moves the cursor, all in one
 * transaction. An event that is already stored is left as it is. An event that was delivered before a
 * reorganisation is recognised, and queued only for channels to which it was not delivered. For a channel
 * where it was retracted, it is queued under a new id.
 *
 * @returns the number of events that are new, or may be, and the channels that events were queued for.
 */
export async function recordRange(
  database: Database,
  open: OpenFeed,
  registry: RegistryIdentity,
  range: RecordedRange | ReadAgain,
  now: number,
): Promise<{ added: number; channels: readonly number[] }> {
  const { id: feed } = open;
  return database.db.transaction().execute(async (transaction) => {
    if (range.nextBlock === undefined) {
      await moveCursor(transaction, open);
    } else {
      const lastBlockHash = range.blocks.at(-1)?.hash;
      await moveCursor(transaction, open, { nextBlock: range.nextBlock, lastBlockHash });
      await keepBlocks(transaction, feed, range.blocks, range.oldestKept);
    }
    if (range.events.length === 0) return { added: 0, channels: [] };
    const recipients = await recipientsOf(database, transaction, feed);
    const tokens = await keysOfTokens(transaction, feed, range.events.map(tokenKeyOf));
    const matched = await matchOrphans(transaction, feed, registry, range.events, [
      ...recipients.rules.keys(),
    ]);
    const events = matched.map((one) => ({ ...one, token: keyIn(tokens, tokenKeyOf(one.at)) }));
    const unknown = events.filter(({ orphan }) => orphan === undefined);
    const inserted = await insertEvents(transaction, feed, unknown, now);
    const again = await announceAgain(transaction, { feed, registry }, events, now);
    let added = 0;
    const queued: Enqueued[] = [];
    for (const { at, cloudEvent, token, orphan } of events) {
      const key = orphan?.key ?? inserted.get(cloudEvent.id);
      if (key === undefined) continue;
      const { deliveredTo = NONE, retractedFor = NONE } = orphan ?? {};
      if (orphan) await mineAgain(transaction, { feed, key }, at, cloudEvent);
      for (const channel of recipients.channelsFor(cloudEvent))
        if (!deliveredTo.has(channel) && !retractedFor.has(channel))
          queued.push({ channel, token, event: key });
      const second = again.get(key);
      if (second !== undefined)
        for (const channel of recipients.channelsFor(second.cloudEvent))
          if (retractedFor.has(channel)) queued.push({ channel, token, event: second.key });
      if (deliveredTo.size === 0) added++;
    }
    // One call locks the queues of the whole range in the order of their keys.
    await enqueue(transaction, queued, now);
    return { added, channels: [...new Set(queued.map(({ channel }) => channel))] };
  });
}

const NONE: ReadonlySet<number> = new Set();

/** Marks an orphan as on the chain again, and replaces its body: a channel may receive it later. */
async function mineAgain(
  db: Transaction<Schema>,
  { feed, key }: { feed: number; key: number },
  { blockNumber, blockHash, blockLogIndex }: RegistryEvent,
  cloudEvent: CloudEvent,
): Promise<void> {
  await db
    .updateTable('events')
    .set({
      orphaned_at: null,
      block_number: blockNumber,
      block_hash: blockHash,
      log_index: blockLogIndex,
      body: JSON.stringify(cloudEvent),
    })
    .where('id', '=', key)
    .execute();
  await db
    .updateTable('orphans')
    .set({ mined_again_in: blockNumber })
    .where('feed', '=', feed)
    .where('event_id', '=', bytesOfId(cloudEvent.id))
    .where('outcome', '=', 'delivered')
    .where('mined_again_in', 'is', null)
    .execute();
}

/** An event of the chain, as it is sent. */
interface Matched {
  at: RegistryEvent;
  cloudEvent: CloudEvent;
  /** The stored event that it is again. */
  orphan: Orphan | undefined;
}

/** An event that subscribers have, or may have, and whose block was orphaned. */
interface Orphan {
  /** Key of its row. */
  key: number;
  eventId: string;
  logIndex: number;
  /** The transaction, and the event's type, token and payload. */
  content: string;
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
 *   it is then announced again (see `announceAgain`).
 * - An event that may have been received is sent with the id and the log index it was sent with before. If
 *   another event now has that log index, it is sent with its own: subscribers who deduplicate by transaction
 *   and log index would otherwise drop one of the two.
 * - If a new event has the position of an orphan with other content, its regular id is taken and subscribers
 *   would drop it as a duplicate. Its id is then derived from the block hash as well.
 */
async function matchOrphans(
  db: Transaction<Schema>,
  feed: number,
  registry: RegistryIdentity,
  events: readonly RegistryEvent[],
  channels: readonly number[],
): Promise<Matched[]> {
  const { chainId } = registry;
  const orphans = await orphansOf(db, feed, channels);
  const matches = match(events, orphans, chainId);
  const taken = new Set(orphans.map(({ eventId }) => eventId));
  const places = new Set(events.map(placeOf));
  return events.map((event) => {
    const orphan = matches.get(event);
    if (orphan) {
      const asBefore = { ...event, logIndex: orphan.logIndex };
      const asSent = places.has(placeOf(asBefore)) ? event : asBefore;
      return { at: event, cloudEvent: toCloudEvent(asSent, registry, orphan.eventId), orphan };
    }
    const { transactionHash, logIndex, blockHash } = event;
    const id = eventIdOf(chainId, transactionHash, logIndex);
    const unused = taken.has(id) ? eventIdOf(chainId, transactionHash, logIndex, blockHash) : id;
    return { at: event, cloudEvent: toCloudEvent(event, registry, unused), orphan };
  });
}

/**
 * Finds each event's orphan, if any. An event may be an orphan twice: earlier versions gave it a new id in
 * each block. The delivered one takes precedence: the subscriber knows the event. Matches by id come before
 * those by content, so that identical logs of one transaction each get their own orphan.
 */
function match(
  events: readonly RegistryEvent[],
  orphans: readonly Orphan[],
  chainId: number,
): ReadonlyMap<RegistryEvent, Orphan> {
  const matches = new Map<RegistryEvent, Orphan>();
  const left = new Map<string, Orphan[]>();
  for (const orphan of orphans) left.set(orphan.content, [...(left.get(orphan.content) ?? []), orphan]);
  const take = (event: RegistryEvent, isDelivered: boolean, eventId?: string): void => {
    const candidates = matches.has(event) ? [] : (left.get(contentOfEvent(event)) ?? []);
    const index = candidates.findIndex(
      (one) => one.deliveredTo.size > 0 === isDelivered && (eventId ?? one.eventId) === one.eventId,
    );
    const [orphan] = index < 0 ? [] : candidates.splice(index, 1);
    if (orphan) matches.set(event, orphan);
  };
  for (const isDelivered of orphans.length > 0 ? [true, false] : []) {
    for (const event of events)
      take(event, isDelivered, eventIdOf(chainId, event.transactionHash, event.logIndex));
    for (const event of events) take(event, isDelivered);
  }
  return matches;
}

/**
 * Stores a further announcement of each event that was retracted for a channel and is on the chain again. The
 * id is new, because a subscriber drops an event whose id it knows, or knows to be retracted.
 *
 * @returns the announcements by the key of their original.
 */
async function announceAgain(
  db: Transaction<Schema>,
  { feed, registry }: { feed: number; registry: RegistryIdentity },
  events: readonly (Matched & { token: number })[],
  now: number,
): Promise<ReadonlyMap<number, { key: number; cloudEvent: CloudEvent }>> {
  const retracted = events.flatMap(({ at, orphan, token }) =>
    orphan !== undefined && orphan.retractedFor.size > 0 ? { at, original: orphan.key, token } : [],
  );
  if (retracted.length === 0) return new Map();
  const ids = await unusedIds(
    db,
    feed,
    retracted.map(({ at: { transactionHash, logIndex, blockHash } }) =>
      eventIdOf(registry.chainId, transactionHash, logIndex, blockHash),
    ),
  );
  const announced = retracted.map((one, index) => ({
    ...one,
    cloudEvent: toCloudEvent(one.at, registry, ids[index]),
  }));
  const keys = await insertEvents(db, feed, announced, now);
  return new Map(
    announced.map(({ original, cloudEvent }) => [original, { key: keyIn(keys, cloudEvent.id), cloudEvent }]),
  );
}

function placeOf({ transactionHash, logIndex }: RegistryEvent): string {
  return `${transactionHash}:${logIndex}`;
}

const orphanedRows = compiled((db, { feed }: { feed: number }) =>
  db
    .selectFrom('events')
    .select(['id', 'event_id', 'token', 'body'])
    .where('feed', '=', feed)
    .where('orphaned_at', 'is not', null)
    .where('audience', '=', 'all')
    .orderBy('log_index'),
);

/** Reads the orphans. There are few, and an index covers just these rows. */
async function orphansOf(
  db: Transaction<Schema>,
  feed: number,
  channels: readonly number[],
): Promise<Orphan[]> {
  const { rows } = await orphanedRows(db, { feed });
  if (rows.length === 0) return [];
  const attempts = await attemptsOf(db, rows.map(idOf));
  const deliveredTo = channelsByEvent(attempts.filter(({ isDelivered }) => isDelivered));
  const candidates = await retractedAmong(db, rows);
  const entries = await lastEntriesOf(
    db,
    channels,
    rows.filter(({ id }) => candidates.has(id)),
  );
  const retractions = entries.filter(({ type }) => type === RETRACTED_TYPE);
  const retractedFor = channelsByEvent(retractions.map((one) => ({ ...one, event: one.original })));
  return rows.map(({ id, event_id, body }) => {
    const { type, data } = JSON.parse(body) as CloudEvent;
    return {
      key: id,
      eventId: idOfBytes(event_id),
      logIndex: data.logIndex,
      content: contentOf(data.transactionHash, type, data.tokenId, data.payload),
      deliveredTo: deliveredTo.get(id) ?? NONE,
      retractedFor: retractedFor.get(id) ?? NONE,
    };
  });
}

function contentOfEvent(event: RegistryEvent): string {
  return contentOf(event.transactionHash, typeOf(event), (event.tokenId ?? 0n).toString(), event.payload);
}

/**
 * The event's content, independent of its position. The decoder always emits the payload's fields in the same
 * order.
 */
function contentOf(transactionHash: string, type: string, tokenId: string, payload: object): string {
  return JSON.stringify([transactionHash, type, tokenId, payload]);
}
