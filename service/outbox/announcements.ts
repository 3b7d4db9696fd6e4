import type { Kysely, Transaction } from 'kysely';
import { v5 as uuidV5 } from 'uuid';
import type { Retraction } from '../../client/events';
import { inBatches } from '../database/batches';
import type { Schema } from '../database/schema';
import { type CloudEvent, EVENT_ID_NAMESPACE, RETRACTED_TYPE } from '../events/cloud-event';
import {
  bytesOfId,
  channelsByEvent,
  enqueue,
  idOf,
  idOfBytes,
  insertEvents,
  keyIn,
  type Enqueued,
  type EventRow,
} from './stored-events';

/**
 * Terms of retractions:
 *
 * - announcement: a row that sends an event. The first one is called the original; its audience is `all`.
 *   After a retraction, a further row with another id announces the event again.
 * - retraction: a row that takes one announcement back.
 *
 * Clients that fetch with retractions are like one more receiver, which has received everything: each orphan
 * is retracted for them, and announced again when it is mined again. The audience of these rows is `fetching`
 * unless a channel gets them, too.
 *
 * In a channel's queue, the announcements and retractions of an event alternate. The last of them therefore
 * tells whether the subscriber has the event.
 */

/** Keys of those originals that were retracted for some channel: they have rows for it besides their own. */
export async function retractedAmong(
  db: Kysely<Schema>,
  originals: readonly { id: number }[],
): Promise<ReadonlySet<number | null>> {
  const rows = await inBatches(originals, (some) =>
    db
      .selectFrom('events')
      .select('original')
      .where('original', 'in', some.map(idOf))
      .where('audience', '=', 'retracting')
      .execute(),
  );
  return new Set(rows.map(({ original }) => original));
}

/** The last announcement or retraction of an event in a channel. */
interface LastEntry {
  channel: number;
  /** Key of the original. */
  original: number;
  /** Key of the entry's row. */
  event: number;
  type: string;
}

/** Finds the last entry of each of these originals in each of these channels, waiting or not. */
export async function lastEntriesOf(
  db: Kysely<Schema>,
  channels: readonly number[],
  originals: readonly { id: number; token: number }[],
): Promise<LastEntry[]> {
  if (channels.length === 0) return [];
  const entries = await inBatches(originals, (some) =>
    db
      .selectFrom('deliveries')
      .innerJoin('events', 'events.id', 'deliveries.event')
      .select(['deliveries.channel', 'deliveries.event', 'events.type'])
      .select((eb) => eb.fn.coalesce('events.original', 'events.id').as('original'))
      .where('deliveries.channel', 'in', channels)
      .where('deliveries.token', 'in', [...new Set(some.map(({ token }) => token))])
      .where((eb) => eb(eb.fn.coalesce('events.original', 'events.id'), 'in', some.map(idOf)))
      .orderBy('deliveries.channel')
      .orderBy('deliveries.token')
      .orderBy('deliveries.position')
      .execute(),
  );
  return [...new Map(entries.map((one) => [`${one.channel}/${one.original}`, one])).values()];
}

/**
 * Replaces each original that was retracted for the channel by its present announcement: the subscriber drops
 * the id of the original. Call it before stored events are enqueued for a channel.
 */
export async function presentAnnouncements(
  db: Kysely<Schema>,
  channel: number,
  originals: readonly EventRow[],
): Promise<EventRow[]> {
  const candidates = await retractedAmong(db, originals);
  const last = await lastEntriesOf(
    db,
    [channel],
    originals.filter(({ id }) => candidates.has(id)),
  );
  const retracted = last.flatMap(({ original, event }) => (event === original ? [] : original));
  if (retracted.length === 0) return [...originals];
  const present = await db
    .selectFrom('events')
    .selectAll()
    .where('original', 'in', retracted)
    .where('orphaned_at', 'is', null)
    .where('type', '<>', RETRACTED_TYPE)
    .execute();
  const byOriginal = new Map(present.map((row) => [row.original, row]));
  return originals.map((original) => byOriginal.get(original.id) ?? original);
}

/**
 * Returns the ids. The id of a stored event is replaced by one derived from it. A block may be orphaned,
 * mined again, and orphaned again: the ids that are made from its hash have then been used.
 */
export async function unusedIds(
  db: Transaction<Schema>,
  feed: number,
  wanted: readonly string[],
): Promise<string[]> {
  return inBatches(wanted, async (some) => {
    for (let ids = some; ;) {
      const rows = await db
        .selectFrom('events')
        .select('event_id')
        .where('feed', '=', feed)
        .where('event_id', 'in', ids.map(bytesOfId))
        .execute();
      if (rows.length === 0) return ids;
      const used = new Set(rows.map(({ event_id }) => idOfBytes(event_id)));
      ids = ids.map((id) => (used.has(id) ? uuidV5(id, EVENT_ID_NAMESPACE) : id));
    }
  });
}

/**
 * Stores a retraction of each announcement for clients that fetch, and queues it for the channels with
 * retractions that received the announcement, or may have. Waiting announcements must have been removed from
 * the queues before.
 *
 * The newest announcement of a token is retracted first, so that a subscriber can undo them one by one.
 *
 * @param announcements in chain order.
 * @param cutOff announcements that were removed from the queues, and may have been sent.
 */
export async function retract(
  db: Transaction<Schema>,
  feed: number,
  announcements: readonly EventRow[],
  channels: readonly number[],
  cutOff: readonly { event: number; channel: number }[],
  now: number,
): Promise<void> {
  if (announcements.length === 0) return;
  const originals = announcements.filter(({ original }) => original === null);
  const last = await lastEntriesOf(db, channels, originals);
  const receivers = channelsByEvent([...last, ...cutOff.filter(({ channel }) => channels.includes(channel))]);

  // Clients that fetch had the original taken back before it was announced again.
  const again = new Set(announcements.map(({ original }) => original));
  const newestFirst = announcements.filter(({ id }) => receivers.has(id) || !again.has(id)).reverse();
  const ids = await unusedIds(
    db,
    feed,
    newestFirst.map(({ event_id, block_hash }) =>
      uuidV5(`${idOfBytes(event_id)}:${block_hash}`, EVENT_ID_NAMESPACE),
    ),
  );
  const retractions = newestFirst.map((row, index) => ({
    cloudEvent: toRetraction(row, ids[index] ?? '', now),
    token: row.token,
    // A retraction is stored with the block and the log index of its announcement.
    at: {
      blockNumber: row.block_number,
      blockHash: row.block_hash,
      blockLogIndex: row.log_index,
      trace: row.trace ?? undefined,
    },
    original: row.original ?? row.id,
    audience: receivers.has(row.id) ? ('retracting' as const) : ('fetching' as const),
    isUnfetched: again.has(row.id),
  }));
  const keys = await insertEvents(db, feed, retractions, now);
  const queued = newestFirst.flatMap(({ id, token }, index): Enqueued[] => {
    const event = keyIn(keys, ids[index] ?? '');
    return [...(receivers.get(id) ?? [])].map((channel) => ({ channel, token, event }));
  });
  await enqueue(db, queued, now);
}

/** The CloudEvent of a retraction (docs/webhook-reference.md, "Retractions"). */
function toRetraction({ event_id, body }: EventRow, id: string, now: number): Retraction {
  const { source, type, data } = JSON.parse(body) as CloudEvent;
  const { chainKey, chainId, registryAddress, tokenId, tokenIdHex } = data;
  const { blockNumber, transactionHash, logIndex } = data;
  return {
    specversion: '1.0',
    id,
    source,
    type: RETRACTED_TYPE,
    datacontenttype: 'application/json',
    time: new Date(now).toISOString(),
    subject: tokenId,
    data: {
      chainKey,
      chainId,
      registryAddress,
      tokenId,
      ...(tokenIdHex !== undefined && { tokenIdHex }),
      retracts: idOfBytes(event_id),
      retracted: { type, blockNumber, transactionHash, logIndex },
    },
  };
}
