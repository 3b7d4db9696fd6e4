import type { Transaction } from 'kysely';
import { v5 as uuidV5 } from 'uuid';
import type { Retraction } from '../../receiver/event-schemas';
import type { Schema } from '../database/schema';
import { RETRACTED_TYPE } from '../subscriptions/event-types';
import { lastEntriesOf, otherRowsOf, unusedIds } from './announcements';
import { EVENT_ID_NAMESPACE, type CloudEvent } from './cloud-event';
import { enqueue, type Enqueued } from './enqueue';
import { bytesOfId, idOfBytes } from './stored-ids';

/** An announcement whose block is orphaned. */
export interface OrphanedAnnouncement {
  id: number;
  event_id: Uint8Array | ArrayBuffer;
  /** Null if the row is the original. */
  original: number | null;
  token: number;
  block_number: number;
  block_hash: string;
  log_index: number;
  body: string;
}

/** Rows per statement. SQLite blocks the event loop, and PostgreSQL takes at most 65,535 parameters. */
const BATCH = 200;

/**
 * Queues a retraction of each announcement for the channels that have retractions and were told of it, or may
 * have been. Waiting announcements must have been removed from the queues before.
 *
 * The newest announcement of a token is retracted first, so that a subscriber can undo them one by one.
 *
 * @param announcements in chain order.
 * @param cutOff announcements that were removed, and may have been sent.
 */
export async function retract(
  db: Transaction<Schema>,
  feed: number,
  announcements: readonly OrphanedAnnouncement[],
  channels: readonly number[],
  cutOff: readonly { event: number; channel: number }[],
  now: number,
): Promise<void> {
  if (channels.length === 0 || announcements.length === 0) return;
  const originals = announcements.filter(({ original }) => original === null);
  const others = await otherRowsOf(
    db,
    originals.map(({ id }) => id),
  );
  const told = new Map<number, Set<number>>();
  const addTold = (event: number, channel: number): void =>
    void told.set(event, (told.get(event) ?? new Set()).add(channel));
  for (const { event, channel } of await lastEntriesOf(db, channels, originals, others))
    addTold(event, channel);
  for (const { event, channel } of cutOff) if (channels.includes(channel)) addTold(event, channel);

  const newestFirst = announcements.filter(({ id }) => told.has(id)).reverse();
  const ids = await unusedIds(
    db,
    feed,
    newestFirst.map(({ event_id, block_hash }) =>
      uuidV5(`${idOfBytes(event_id)}:${block_hash}`, EVENT_ID_NAMESPACE),
    ),
  );
  const rows = newestFirst.map((announcement, index) =>
    retractionOf(feed, announcement, ids[index] ?? '', now),
  );
  const keys = new Map<string, number>();
  for (let from = 0; from < rows.length; from += BATCH) {
    const inserted = await db
      .insertInto('events')
      .values(rows.slice(from, from + BATCH))
      .returning(['id', 'event_id'])
      .execute();
    for (const { id, event_id } of inserted) keys.set(idOfBytes(event_id), id);
  }
  const queued = newestFirst.flatMap(({ id, token }, index): Enqueued[] =>
    [...(told.get(id) ?? [])].map((channel) => ({ channel, token, event: keys.get(ids[index] ?? '') ?? 0 })),
  );
  await enqueue(db, queued, now);
}

/** The row of a retraction. It has the place of the announcement, whose block is the one it is about. */
function retractionOf(feed: number, announcement: OrphanedAnnouncement, id: string, now: number) {
  const { token, original, block_number, block_hash, log_index, event_id, body } = announcement;
  const event = JSON.parse(body) as CloudEvent;
  return {
    feed,
    token,
    event_id: bytesOfId(id),
    type: RETRACTED_TYPE,
    block_number,
    block_hash,
    log_index,
    body: JSON.stringify(toRetraction(event, idOfBytes(event_id), id, now)),
    audience: 'retracting' as const,
    original: original ?? announcement.id,
    recorded_at: now,
  };
}

/** The CloudEvent of a retraction (docs/webhooks.md, "Retractions"). */
function toRetraction(
  { source, type, data }: CloudEvent,
  retracts: string,
  id: string,
  now: number,
): Retraction {
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
      retracts,
      retracted: { type, blockNumber, transactionHash, logIndex },
    },
  };
}
