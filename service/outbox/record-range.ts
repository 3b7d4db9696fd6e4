import type { Kysely, Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import { ServiceError } from '../errors';
import { toCloudEvent, type CloudEvent, type RegistryIdentity } from './cloud-event';
import type { RegistryEvent } from './registry-event';

/** What a range of blocks held. */
export interface RecordedRange {
  fromBlock: number;
  events: RegistryEvent[];
  cursor: { nextBlock: number; lastBlockHash: string | undefined };
}

/**
 * Stores the events of a range, queues each for delivery, and moves the cursor: in one transaction, so that an event is either
 * stored and queued and behind the cursor, or none of the three. An event that is already stored is left as it is.
 *
 * @returns how many events were new.
 */
export async function recordRange(
  db: Kysely<Schema>,
  feed: string,
  registry: RegistryIdentity,
  range: RecordedRange,
  now: number,
): Promise<number> {
  return db.transaction().execute(async (transaction) => {
    await moveCursor(transaction, feed, range);
    let added = 0;
    for (const event of range.events) {
      const cloudEvent = toCloudEvent(event, registry);
      if (!(await insertEvent(transaction, feed, event, cloudEvent, now))) continue;
      await enqueue(transaction, feed, cloudEvent, now);
      added++;
    }
    return added;
  });
}

/** Fenced by where the range began: a second writer of the same feed finds no row and stores nothing. */
async function moveCursor(
  db: Transaction<Schema>,
  feed: string,
  { fromBlock, cursor }: RecordedRange,
): Promise<void> {
  const { numUpdatedRows } = await db
    .updateTable('feeds')
    .set({ next_block: cursor.nextBlock, last_block_hash: cursor.lastBlockHash ?? null })
    .where('feed', '=', feed)
    .where('next_block', '=', fromBlock)
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) {
    throw new ServiceError(
      'CURSOR_MOVED',
      `Feed ${feed}: another writer moved the cursor from block ${fromBlock}.`,
    );
  }
}

async function insertEvent(
  db: Transaction<Schema>,
  feed: string,
  event: RegistryEvent,
  cloudEvent: CloudEvent,
  now: number,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('events')
    .values({
      feed,
      event_id: cloudEvent.id,
      type: cloudEvent.type,
      token_id: cloudEvent.data.tokenId,
      block_number: event.blockNumber,
      block_hash: event.blockHash,
      transaction_hash: event.transactionHash,
      log_index: event.logIndex,
      body: JSON.stringify(cloudEvent),
      recorded_at: now,
    })
    .onConflict((conflict) => conflict.columns(['feed', 'event_id']).doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** Appends to the token's stream. A stream that was idle is due at once; one that backs off keeps its time. */
async function enqueue(
  db: Transaction<Schema>,
  feed: string,
  cloudEvent: CloudEvent,
  now: number,
): Promise<void> {
  const stream = `${feed}/${cloudEvent.subject}`;
  const { tail } = await db
    .insertInto('streams')
    .values({ stream, feed, head: 1, tail: 1, attempts: 0, next_attempt_at: now, lease: null })
    .onConflict((conflict) =>
      conflict.column('stream').doUpdateSet((eb) => ({
        tail: eb('streams.tail', '+', 1),
        next_attempt_at: eb.fn.coalesce('streams.next_attempt_at', 'excluded.next_attempt_at'),
      })),
    )
    .returning('tail')
    .executeTakeFirstOrThrow();
  await db
    .insertInto('deliveries')
    .values({ stream, position: tail, event_id: cloudEvent.id, feed, delivered_at: null })
    .execute();
}
