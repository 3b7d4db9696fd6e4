import { sql, type Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import { streamOf, toCloudEvent, type CloudEvent, type RegistryIdentity } from './cloud-event';
import type { KeptBlock, OpenFeed } from './feed-cursor';
import { matchOrphans } from './match-orphans';
import { keepBlocks, moveCursor } from './move-cursor';

/** A range of blocks that was read, with its events. */
export interface RecordedRange {
  events: RegistryEvent[];
  /** The blocks whose hashes are kept: those with events, and the last. Ascending. */
  blocks: KeptBlock[];
  /** Kept blocks before this one are deleted. */
  oldestKept: number;
  nextBlock: number;
}

interface NewEvent {
  event: RegistryEvent;
  cloudEvent: CloudEvent;
}

/** Rows per statement. SQLite blocks the event loop, and PostgreSQL takes at most 65,535 parameters. */
const BATCH = 200;

/**
 * Stores the events of a range, queues them for delivery and moves the cursor, all in one transaction. An
 * event that is already stored is left as it is. An event that was delivered before a reorganisation is
 * recognised and not queued.
 *
 * @returns the number of new events.
 */
export async function recordRange(
  { db }: Database,
  open: OpenFeed,
  registry: RegistryIdentity,
  range: RecordedRange,
  now: number,
): Promise<number> {
  const { feed } = open;
  return db.transaction().execute(async (transaction) => {
    const lastBlockHash = range.blocks.at(-1)?.hash;
    await moveCursor(transaction, open, { nextBlock: range.nextBlock, lastBlockHash });
    await keepBlocks(transaction, feed, range.blocks, range.oldestKept);
    const unknown = await matchOrphans(transaction, feed, registry, range.events);
    let added = 0;
    for (let from = 0; from < unknown.length; from += BATCH) {
      const batch = unknown
        .slice(from, from + BATCH)
        .map(({ event, eventId }) => ({ event, cloudEvent: toCloudEvent(event, registry, eventId) }));
      const inserted = await insertEvents(transaction, feed, batch, now);
      await enqueue(transaction, feed, inserted, now);
      added += inserted.length;
    }
    return added;
  });
}

async function insertEvents(
  db: Transaction<Schema>,
  feed: string,
  batch: readonly NewEvent[],
  now: number,
): Promise<CloudEvent[]> {
  const rows = batch.map(({ event, cloudEvent }) => ({
    feed,
    event_id: cloudEvent.id,
    type: cloudEvent.type,
    token_id: cloudEvent.data.tokenId,
    block_number: event.blockNumber,
    block_hash: event.blockHash,
    transaction_hash: event.transactionHash,
    log_index: event.blockLogIndex,
    body: JSON.stringify(cloudEvent),
    recorded_at: now,
  }));
  const inserted = await db
    .insertInto('events')
    .values(rows)
    .onConflict((conflict) => conflict.columns(['feed', 'event_id']).doNothing())
    .returning('event_id')
    .execute();
  const ids = new Set(inserted.map(({ event_id }) => event_id));
  return batch.flatMap(({ cloudEvent }) => (ids.has(cloudEvent.id) ? [cloudEvent] : []));
}

/**
 * Appends events to their token queues. An idle queue falls due at once; a queue that backs off keeps its
 * time. Queues are written in the order of their names, like everywhere that several are locked (see
 * settle-deliveries.ts).
 */
export async function enqueue(
  db: Transaction<Schema>,
  feed: string,
  events: readonly Pick<CloudEvent, 'id' | 'data'>[],
  now: number,
): Promise<void> {
  if (events.length === 0) return;
  const byStream = new Map<string, string[]>();
  for (const { id, data } of events) {
    const stream = streamOf(feed, data);
    byStream.set(stream, [...(byStream.get(stream) ?? []), id]);
  }
  const streams = [...byStream].sort(([left], [right]) => (left < right ? -1 : 1));
  const tails = await db
    .insertInto('streams')
    .values(
      streams.map(([stream, ids]) => ({
        stream,
        feed,
        head: 1,
        tail: ids.length,
        attempts: 0,
        next_attempt_at: now,
        lease: null,
      })),
    )
    .onConflict((conflict) =>
      conflict.column('stream').doUpdateSet((eb) => ({
        tail: sql<number>`streams.tail + excluded.tail`,
        next_attempt_at: eb.fn.coalesce('streams.next_attempt_at', 'excluded.next_attempt_at'),
      })),
    )
    .returning(['stream', 'tail'])
    .execute();
  const deliveries = tails.flatMap(({ stream, tail }) => {
    const ids = byStream.get(stream) ?? [];
    return ids.map((id, index) => ({
      stream,
      position: tail - ids.length + 1 + index,
      event_id: id,
      feed,
    }));
  });
  await db.insertInto('deliveries').values(deliveries).execute();
}
