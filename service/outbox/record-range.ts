import type { Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import { announceAgain } from './announce-again';
import { channelsFor, recipientsOf, type Recipient } from './channels';
import { toCloudEvent, tokenKeyOf, type CloudEvent, type RegistryIdentity } from './cloud-event';
import { enqueue, type Enqueued } from './enqueue';
import type { KeptBlock, OpenFeed } from './feed-cursor';
import { matchOrphans, type Matched } from './match-orphans';
import { keepBlocks, moveCursor } from './move-cursor';
import { bytesOfId, idOfBytes } from './stored-ids';
import { keysOfTokens } from './tokens';

/** A range of blocks that was read, with its events. */
export interface RecordedRange {
  events: RegistryEvent[];
  /** The blocks whose hashes are kept: those with events, and the last. Ascending. */
  blocks: KeptBlock[];
  /** Kept blocks before this one are deleted. */
  oldestKept: number;
  nextBlock: number;
}

/** An event with its body and the key of its token. */
interface NewEvent extends Matched {
  cloudEvent: CloudEvent;
  token: number;
}

/** Rows per statement. SQLite blocks the event loop, and PostgreSQL takes at most 65,535 parameters. */
const BATCH = 200;

/**
 * Stores the events of a range, queues them for the channels that want them, and moves the cursor, all in one
 * transaction. An event that is already stored is left as it is. An event that was delivered before a
 * reorganisation is recognised, and queued only for channels to which it was not delivered. Where it was
 * retracted, it is queued under a new id.
 *
 * @returns the number of events that are new, or may be, and the channels that events were queued for.
 */
export async function recordRange(
  database: Database,
  open: OpenFeed,
  registry: RegistryIdentity,
  range: RecordedRange,
  now: number,
): Promise<{ added: number; channels: readonly number[] }> {
  const { id: feed } = open;
  return database.db.transaction().execute(async (transaction) => {
    const lastBlockHash = range.blocks.at(-1)?.hash;
    await moveCursor(transaction, open, { nextBlock: range.nextBlock, lastBlockHash });
    await keepBlocks(transaction, feed, range.blocks, range.oldestKept);
    if (range.events.length === 0) return { added: 0, channels: [] };
    const recipients = await recipientsOf(database, transaction, feed);
    const channelKeys = recipients.map(({ channel }) => channel);
    const matched = await matchOrphans(transaction, feed, registry, range.events, channelKeys);
    let added = 0;
    const queued: Enqueued[] = [];
    for (let from = 0; from < matched.length; from += BATCH) {
      const batch = matched.slice(from, from + BATCH);
      const tokens = await keysOfTokens(
        transaction,
        feed,
        batch.map(({ event }) => tokenKeyOf(event)),
      );
      const events = batch.map((one) => ({
        ...one,
        cloudEvent: toCloudEvent(one.asSent, registry, one.eventId),
        token: tokens.get(tokenKeyOf(one.event)) ?? 0,
      }));
      const inserted = await insertEvents(transaction, feed, events, now);
      const again = await announceAgain(transaction, { feed, registry }, events, now);
      for (const one of events) {
        const { cloudEvent, token, orphan } = one;
        const key = orphan?.key ?? inserted.get(one.eventId);
        if (key === undefined) continue;
        const channels = channelsFor(without(recipients, orphan), cloudEvent);
        if (orphan)
          await mineAgain(transaction, key, one.event, channels.length > 0 ? cloudEvent : undefined);
        queued.push(...channels.map((channel) => ({ channel, token, event: key })));
        const second = again.get(key);
        if (second !== undefined && orphan !== undefined) {
          const retracted = recipients.filter(({ channel }) => orphan.retractedFor.has(channel));
          for (const channel of channelsFor(retracted, second.cloudEvent))
            queued.push({ channel, token, event: second.key });
        }
        if (orphan === undefined || orphan.deliveredTo.size === 0) added++;
      }
    }
    // All at once: this locks the queues of the whole range in the order of their keys.
    await enqueue(transaction, queued, now);
    return { added, channels: [...new Set(queued.map(({ channel }) => channel))] };
  });
}

/** Those that an orphan was neither delivered to nor retracted for. */
function without(recipients: readonly Recipient[], orphan: Matched['orphan']): readonly Recipient[] {
  if (orphan === undefined) return recipients;
  const { deliveredTo, retractedFor } = orphan;
  return recipients.filter(({ channel }) => !deliveredTo.has(channel) && !retractedFor.has(channel));
}

/** Inserts the events that are not orphans; returns their keys by id. */
async function insertEvents(
  db: Transaction<Schema>,
  feed: number,
  batch: readonly NewEvent[],
  now: number,
): Promise<ReadonlyMap<string, number>> {
  const rows = batch
    .filter(({ orphan }) => orphan === undefined)
    .map(({ event, cloudEvent, token }) => ({
      feed,
      token,
      event_id: bytesOfId(cloudEvent.id),
      type: cloudEvent.type,
      block_number: event.blockNumber,
      block_hash: event.blockHash,
      log_index: event.blockLogIndex,
      body: JSON.stringify(cloudEvent),
      recorded_at: now,
    }));
  if (rows.length === 0) return new Map();
  const inserted = await db
    .insertInto('events')
    .values(rows)
    .onConflict((conflict) => conflict.columns(['event_id', 'feed']).doNothing())
    .returning(['id', 'event_id'])
    .execute();
  return new Map(inserted.map(({ id, event_id }) => [idOfBytes(event_id), id]));
}

/** Marks an orphan as on the chain again. Its body is replaced if a channel has still to receive it. */
async function mineAgain(
  db: Transaction<Schema>,
  key: number,
  { blockNumber, blockHash, blockLogIndex }: RegistryEvent,
  body: CloudEvent | undefined,
): Promise<void> {
  await db
    .updateTable('events')
    .set({
      orphaned_at: null,
      block_number: blockNumber,
      block_hash: blockHash,
      log_index: blockLogIndex,
      ...(body && { body: JSON.stringify(body) }),
    })
    .where('id', '=', key)
    .execute();
}
