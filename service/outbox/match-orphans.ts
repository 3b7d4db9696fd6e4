import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import { eventIdOf, typeOf, type CloudEvent, type RegistryIdentity } from './cloud-event';

/** An event to store and send, and its id. */
interface NewEvent {
  event: RegistryEvent;
  eventId: string;
}

/** An event that the subscriber has, or may have, and whose block was orphaned. */
interface Orphan {
  eventId: string;
  logIndex: number;
  /** The transaction, and the event's type, token and payload. */
  content: string;
  /** False if no attempt is known to have succeeded; the event was withdrawn. */
  isDelivered: boolean;
}

/**
 * Finds the events that were already sent before a reorganisation orphaned their block and their transaction
 * was mined again. They usually have the same ids. A transaction may emit different logs in the new block,
 * however, and earlier versions derived ids from positions in blocks. Events are therefore matched by content
 * as well.
 *
 * - A delivered event keeps its id, is marked as on the chain again, and is not sent a second time.
 * - An event that may have been received is sent with the id and the log index it was sent with before. If
 *   another event now has that log index, it is sent with its own: subscribers who deduplicate by transaction
 *   and log index would otherwise drop one of the two.
 *
 * @returns the events to send: those that may have been received, and all new ones. If a new event has the
 *   position of an orphan with other content, its regular id is taken and subscribers would drop it as a
 *   duplicate. Its id is then derived from the block hash as well.
 */
export async function matchOrphans(
  db: Transaction<Schema>,
  feed: string,
  { chainId }: RegistryIdentity,
  events: readonly RegistryEvent[],
): Promise<NewEvent[]> {
  if (events.length === 0) return [];
  const delivered = await deliveredOf(db, feed);
  const attempted = await attemptedOf(db, feed);
  const taken = new Set([...delivered, ...attempted].map(({ eventId }) => eventId));
  const places = new Set(events.map(placeOf));
  // An event may be an orphan twice: earlier versions gave it a new id in each block. The delivered one takes
  // precedence: the subscriber knows the event.
  const matches = new Map<RegistryEvent, Orphan>();
  match(events, delivered, chainId, matches);
  match(events, attempted, chainId, matches);
  const newEvents: NewEvent[] = [];
  for (const event of events) {
    const orphan = matches.get(event);
    if (orphan?.isDelivered) {
      await minedAgain(db, feed, orphan.eventId, event);
    } else if (orphan) {
      const asSent = { ...event, logIndex: orphan.logIndex };
      const isFree = !places.has(placeOf(asSent));
      newEvents.push({ event: isFree ? asSent : event, eventId: orphan.eventId });
    } else {
      const { transactionHash, logIndex, blockHash } = event;
      const id = eventIdOf(chainId, transactionHash, logIndex);
      const eventId = taken.has(id) ? eventIdOf(chainId, transactionHash, logIndex, blockHash) : id;
      newEvents.push({ event, eventId });
    }
  }
  return newEvents;
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

/** Reads the delivered orphans. There are few, and an index covers just these rows. */
async function deliveredOf(db: Transaction<Schema>, feed: string): Promise<Orphan[]> {
  const rows = await db
    .selectFrom('events')
    .select(['event_id', 'body'])
    .where('feed', '=', feed)
    .where('orphaned_at', 'is not', null)
    .orderBy('log_index')
    .execute();
  return rows.map(({ event_id, body }) => orphanOf(event_id, body, true));
}

/**
 * Reads the withdrawn events that may have reached the subscriber unnoticed and were not sent again since.
 */
async function attemptedOf(db: Transaction<Schema>, feed: string): Promise<Orphan[]> {
  const rows = await db
    .selectFrom('orphans')
    .leftJoin('events', (join) =>
      join.onRef('events.feed', '=', 'orphans.feed').onRef('events.event_id', '=', 'orphans.event_id'),
    )
    .select(['orphans.event_id', 'orphans.body'])
    .where('orphans.feed', '=', feed)
    .where('orphans.outcome', '=', 'attempted')
    .where('events.event_id', 'is', null)
    .execute();
  // An event that was withdrawn several times has several rows.
  const byId = new Map(rows.map(({ event_id, body }) => [event_id, orphanOf(event_id, body, false)]));
  return [...byId.values()];
}

function orphanOf(eventId: string, body: string, isDelivered: boolean): Orphan {
  const { type, data } = JSON.parse(body) as CloudEvent;
  const content = contentOf(data.transactionHash, type, data.tokenId, data.payload);
  return { eventId, logIndex: data.logIndex, content, isDelivered };
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

async function minedAgain(
  db: Transaction<Schema>,
  feed: string,
  eventId: string,
  { blockNumber, blockHash, blockLogIndex }: RegistryEvent,
): Promise<void> {
  await db
    .updateTable('events')
    .set({ orphaned_at: null, block_number: blockNumber, block_hash: blockHash, log_index: blockLogIndex })
    .where('feed', '=', feed)
    .where('event_id', '=', eventId)
    .execute();
  await db
    .updateTable('orphans')
    .set({ mined_again_in: blockNumber })
    .where('feed', '=', feed)
    .where('event_id', '=', eventId)
    .where('mined_again_in', 'is', null)
    .execute();
}
