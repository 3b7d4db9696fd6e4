import type { Transaction } from 'kysely';
import { v5 as uuidV5 } from 'uuid';
import type { Retraction } from '../../receiver/event-schemas';
import type { Schema } from '../database/schema';
import { RETRACTED_TYPE } from '../events/event-types';
import { lastEntriesOf, otherRowsOf, unusedIds } from './announcements';
import { EVENT_ID_NAMESPACE, type CloudEvent } from '../events/cloud-event';
import { enqueue, type Enqueued } from './enqueue';
import { insertEvents } from './insert-events';
import { idOfBytes } from './stored-ids';
import { keyIn } from './tokens';

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

/**
 * Queues a retraction of each announcement for the channels with retractions that received the announcement,
 * or may have. Waiting announcements must have been removed from the queues before.
 *
 * The newest announcement of a token is retracted first, so that a subscriber can undo them one by one.
 *
 * @param announcements in chain order.
 * @param cutOff announcements that were removed from the queues, and may have been sent.
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
  // A retraction is stored with the block and the log index of its announcement.
  const retractions = newestFirst.map(
    ({ id, event_id, original, token, block_number, block_hash, log_index, body }, index) => ({
      cloudEvent: toRetraction(JSON.parse(body) as CloudEvent, idOfBytes(event_id), ids[index] ?? '', now),
      token,
      at: { blockNumber: block_number, blockHash: block_hash, blockLogIndex: log_index },
      original: original ?? id,
    }),
  );
  const keys = await insertEvents(db, feed, retractions, now);
  const queued = newestFirst.flatMap(({ id, token }, index): Enqueued[] => {
    const event = keyIn(keys, ids[index] ?? '');
    return [...(told.get(id) ?? [])].map((channel) => ({ channel, token, event }));
  });
  await enqueue(db, queued, now);
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
