import type { Transaction } from 'kysely';
import type { Retraction } from '../../receiver/event-schemas';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import type { CloudEvent } from '../events/cloud-event';
import { bytesOfId, idOfBytes } from './stored-ids';

/** An event that is to be stored. */
export interface NewEvent {
  cloudEvent: CloudEvent | Retraction;
  /** Key of the token's row. */
  token: number;
  at: Pick<RegistryEvent, 'blockNumber' | 'blockHash' | 'blockLogIndex'>;
  /** Key of the event that this one retracts or announces again. Undefined for the event itself. */
  original?: number;
  /** Epoch milliseconds. Undefined: now. */
  recordedAt?: number;
}

/** Rows per statement. SQLite blocks the event loop, and PostgreSQL takes at most 65,535 parameters. */
const BATCH = 200;

/** Stores those events whose ids are new to the feed. Returns their keys by id. */
export async function insertEvents(
  db: Transaction<Schema>,
  feed: number,
  events: readonly NewEvent[],
  now: number,
): Promise<ReadonlyMap<string, number>> {
  const keys = new Map<string, number>();
  for (let from = 0; from < events.length; from += BATCH) {
    const inserted = await db
      .insertInto('events')
      .values(events.slice(from, from + BATCH).map((event) => rowOf(feed, event, now)))
      .onConflict((conflict) => conflict.columns(['event_id', 'feed']).doNothing())
      .returning(['id', 'event_id'])
      .execute();
    for (const { id, event_id } of inserted) keys.set(idOfBytes(event_id), id);
  }
  return keys;
}

function rowOf(feed: number, { cloudEvent, token, at, original, recordedAt }: NewEvent, now: number) {
  return {
    feed,
    token,
    event_id: bytesOfId(cloudEvent.id),
    type: cloudEvent.type,
    block_number: at.blockNumber,
    block_hash: at.blockHash,
    log_index: at.blockLogIndex,
    body: JSON.stringify(cloudEvent),
    audience: original === undefined ? ('all' as const) : ('retracting' as const),
    original: original ?? null,
    recorded_at: recordedAt ?? now,
  };
}
