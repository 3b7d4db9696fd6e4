import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import { eventIdOf, typeOf, type CloudEvent, type RegistryIdentity } from './cloud-event';

/** An event that has to be announced, and the id for it. */
interface NewEvent {
  event: RegistryEvent;
  eventId: string;
}

/** An event that the subscriber has, or may have, and whose block a reorganisation took away. */
interface Orphan {
  eventId: string;
  logIndex: number;
  /** The transaction, and what the event says. */
  content: string;
  /** False: no attempt is known to have succeeded, and the event was withdrawn. */
  isDelivered: boolean;
}

/**
 * Finds the events that were sent already, before a reorganisation took their block away and their
 * transaction was mined again. Usually they have the same ids. But a transaction may log differently in the
 * new block, and earlier versions made ids of places in blocks: an event is also recognised by what it says.
 *
 * - One that was delivered keeps its id, is on the chain again, and is not announced a second time.
 * - One that may have been received is announced under the id and the log index that it was sent under. If
 *   another event stands at that log index now, it has its own: subscribers who deduplicate by transaction
 *   and log index would take one of the two for known.
 *
 * @returns what has to be announced: those, and all others. Should one of the others have come to stand where
 *   an orphan of another content stood, then the id by chain, transaction and log is taken, and subscribers
 *   would take the event for known: its id is made with the block's hash as well.
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
  // An event may be an orphan twice: earlier versions gave it another id in another block. If one of the two
  // was delivered, the event is known.
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
 * Adds the orphan of each event that has one to `matches`. Those with the same id come first: of several logs
 * of a transaction that say the same, each finds its own.
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

/** Rarely any: an index holds just these rows. */
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
 * Those that may have reached the subscriber without the service knowing, that were withdrawn, and that were
 * not announced again since.
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
  // An event may have been withdrawn several times.
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

/** What an event says, wherever it stands. The payload's fields come in one order, from one decoder. */
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
