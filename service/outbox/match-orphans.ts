import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import { lastEntriesOf, otherRowsOf, unusedIds } from './announcements';
import {
  eventIdOf,
  toCloudEvent,
  typeOf,
  type CloudEvent,
  type RegistryIdentity,
} from '../events/cloud-event';
import { bytesOfId, idOfBytes, insertEvents, keyIn } from './stored-events';

/** An event with the id to send it with. */
export interface Matched {
  event: RegistryEvent;
  /** The event with the log index to send it with. */
  asSent: RegistryEvent;
  eventId: string;
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
export async function matchOrphans(
  db: Transaction<Schema>,
  feed: number,
  { chainId }: RegistryIdentity,
  events: readonly RegistryEvent[],
  channels: readonly number[],
): Promise<Matched[]> {
  const orphans = await orphansOf(db, feed, channels);
  const taken = new Set(orphans.map(({ eventId }) => eventId));
  const places = new Set(events.map(placeOf));
  // An event may be an orphan twice: earlier versions gave it a new id in each block. The delivered one takes
  // precedence: the subscriber knows the event.
  const matches = new Map<RegistryEvent, Orphan>();
  const isDelivered = ({ deliveredTo }: Orphan): boolean => deliveredTo.size > 0;
  match(events, orphans.filter(isDelivered), chainId, matches);
  match(
    events,
    orphans.filter((orphan) => !isDelivered(orphan)),
    chainId,
    matches,
  );
  const matched: Matched[] = [];
  for (const event of events) {
    const orphan = matches.get(event);
    if (orphan) {
      await noteMinedAgain(db, feed, orphan.eventId, event);
      const asSent = { ...event, logIndex: orphan.logIndex };
      const isFree = !places.has(placeOf(asSent));
      matched.push({ event, asSent: isFree ? asSent : event, eventId: orphan.eventId, orphan });
    } else {
      const { transactionHash, logIndex, blockHash } = event;
      const id = eventIdOf(chainId, transactionHash, logIndex);
      const eventId = taken.has(id) ? eventIdOf(chainId, transactionHash, logIndex, blockHash) : id;
      matched.push({ event, asSent: event, eventId, orphan });
    }
  }
  return matched;
}

/**
 * Stores a further announcement of each event that was retracted for a channel and is on the chain again. The
 * id is new, because a subscriber drops an event whose id it knows, or knows to be retracted.
 *
 * @returns the announcements by the key of their original.
 */
export async function announceAgain(
  db: Transaction<Schema>,
  { feed, registry }: { feed: number; registry: RegistryIdentity },
  events: readonly (Matched & { token: number })[],
  now: number,
): Promise<ReadonlyMap<number, { key: number; cloudEvent: CloudEvent }>> {
  const retracted = events.flatMap(({ event, orphan, token }) =>
    orphan !== undefined && orphan.retractedFor.size > 0 ? { event, original: orphan.key, token } : [],
  );
  if (retracted.length === 0) return new Map();
  const ids = await unusedIds(
    db,
    feed,
    retracted.map(({ event: { transactionHash, logIndex, blockHash } }) =>
      eventIdOf(registry.chainId, transactionHash, logIndex, blockHash),
    ),
  );
  const announced = retracted.map(({ event, token, original }, index) => ({
    cloudEvent: toCloudEvent(event, registry, ids[index]),
    token,
    at: event,
    original,
  }));
  const keys = await insertEvents(db, feed, announced, now);
  return new Map(
    announced.map(({ original, cloudEvent }) => [original, { key: keyIn(keys, cloudEvent.id), cloudEvent }]),
  );
}

/**
 * Adds each event's orphan, if any, to `matches`. Matches by id come first, so that identical logs of one
 * transaction each get their own orphan.
 */
function match(
  events: readonly RegistryEvent[],
  orphans: readonly Orphan[],
  chainId: number,
  matches: Map<RegistryEvent, Orphan>,
): void {
  if (orphans.length === 0) return;
  const left = new Map<string, Orphan[]>();
  for (const orphan of orphans) left.set(orphan.content, [...(left.get(orphan.content) ?? []), orphan]);
  const take = (event: RegistryEvent, isIts: (orphan: Orphan) => boolean): void => {
    const candidates = matches.has(event) ? [] : (left.get(contentOfEvent(event)) ?? []);
    const index = candidates.findIndex(isIts);
    const [orphan] = index < 0 ? [] : candidates.splice(index, 1);
    if (orphan) matches.set(event, orphan);
  };
  for (const event of events) {
    const id = eventIdOf(chainId, event.transactionHash, event.logIndex);
    take(event, ({ eventId }) => eventId === id);
  }
  for (const event of events) take(event, () => true);
}

function placeOf({ transactionHash, logIndex }: RegistryEvent): string {
  return `${transactionHash}:${logIndex}`;
}

/** Reads the orphans. There are few, and an index covers just these rows. */
async function orphansOf(
  db: Transaction<Schema>,
  feed: number,
  channels: readonly number[],
): Promise<Orphan[]> {
  const rows = await db
    .selectFrom('events')
    .select(['id', 'event_id', 'token', 'body'])
    .where('feed', '=', feed)
    .where('orphaned_at', 'is not', null)
    .where('audience', '=', 'all')
    .orderBy('log_index')
    .execute();
  if (rows.length === 0) return [];
  const deliveredTo = await deliveriesOfOrphans(db, feed);
  const others = await otherRowsOf(db, rows);
  const entries = others.length === 0 ? [] : await lastEntriesOf(db, channels, rows, others);
  const retractions = entries.filter(({ isRetraction }) => isRetraction);
  return rows.map(({ id, event_id, body }) => {
    const { type, data } = JSON.parse(body) as CloudEvent;
    return {
      key: id,
      eventId: idOfBytes(event_id),
      logIndex: data.logIndex,
      content: contentOf(data.transactionHash, type, data.tokenId, data.payload),
      deliveredTo: deliveredTo.get(id) ?? NONE,
      retractedFor: new Set(retractions.flatMap(({ original, channel }) => (original === id ? channel : []))),
    };
  });
}

const NONE: ReadonlySet<number> = new Set();

/** The channels to which each orphan was delivered, by the keys of the orphans. */
async function deliveriesOfOrphans(
  db: Transaction<Schema>,
  feed: number,
): Promise<ReadonlyMap<number, ReadonlySet<number>>> {
  const rows = await db
    .selectFrom('events')
    .innerJoin('attempts', 'attempts.event', 'events.id')
    .select(['events.id', 'attempts.channel'])
    .distinct()
    .where('events.feed', '=', feed)
    .where('events.orphaned_at', 'is not', null)
    .where('attempts.error', 'is', null)
    .execute();
  const channels = new Map<number, Set<number>>();
  for (const { id, channel } of rows) channels.set(id, (channels.get(id) ?? new Set()).add(channel));
  return channels;
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

async function noteMinedAgain(
  db: Transaction<Schema>,
  feed: number,
  eventId: string,
  { blockNumber }: RegistryEvent,
): Promise<void> {
  await db
    .updateTable('orphans')
    .set({ mined_again_in: blockNumber })
    .where('feed', '=', feed)
    .where('event_id', '=', bytesOfId(eventId))
    .where('outcome', '=', 'delivered')
    .where('mined_again_in', 'is', null)
    .execute();
}
