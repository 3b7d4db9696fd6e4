import type { Transaction } from 'kysely';
import type { Database } from '../database/database';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import { channelsFor, recipientsOf, type Recipient } from './channels';
import { toCloudEvent, tokenKeyOf, type CloudEvent, type RegistryIdentity } from '../events/cloud-event';
import { enqueue, insertEvents, keyIn, keysOfTokens, type Enqueued } from './stored-events';
import { keepBlocks, moveCursor, type KeptBlock, type OpenFeed } from './feeds';
import { announceAgain, matchOrphans, type Matched } from './match-orphans';

/** A range of blocks that was read, with its events. */
interface RecordedRange {
  events: RegistryEvent[];
  /** The blocks whose hashes are kept: those with events, and the last. Ascending. */
  blocks: KeptBlock[];
  /** Kept blocks before this one are deleted. */
  oldestKept: number;
  nextBlock: number;
}

/** The events of blocks that were read before: the cursor stays. */
type ReadAgain = Pick<RecordedRange, 'events'> & { nextBlock?: never };

/**
 * Stores the events of a range, queues them for the channels that want them, and moves the cursor, all in one
 * transaction. An event that is already stored is left as it is. An event that was delivered before a
 * reorganisation is recognised, and queued only for channels to which it was not delivered. For a channel
 * where it was retracted, it is queued under a new id.
 *
 * @returns the number of events that are new, or may be, and the channels that events were queued for.
 */
export async function recordRange(
  database: Database,
  open: OpenFeed,
  registry: RegistryIdentity,
  range: RecordedRange | ReadAgain,
  now: number,
): Promise<{ added: number; channels: readonly number[] }> {
  const { id: feed } = open;
  return database.db.transaction().execute(async (transaction) => {
    if (range.nextBlock === undefined) {
      await moveCursor(transaction, open);
    } else {
      const lastBlockHash = range.blocks.at(-1)?.hash;
      await moveCursor(transaction, open, { nextBlock: range.nextBlock, lastBlockHash });
      await keepBlocks(transaction, feed, range.blocks, range.oldestKept);
    }
    if (range.events.length === 0) return { added: 0, channels: [] };
    const recipients = await recipientsOf(database, transaction, feed);
    const channelKeys = recipients.map(({ channel }) => channel);
    const matched = await matchOrphans(transaction, feed, registry, range.events, channelKeys);
    const tokens = await keysOfTokens(
      transaction,
      feed,
      matched.map(({ event }) => tokenKeyOf(event)),
    );
    const events = matched.map((one) => ({
      ...one,
      at: one.event,
      cloudEvent: toCloudEvent(one.asSent, registry, one.eventId),
      token: keyIn(tokens, tokenKeyOf(one.event)),
    }));
    const unknown = events.filter(({ orphan }) => orphan === undefined);
    const inserted = await insertEvents(transaction, feed, unknown, now);
    const again = await announceAgain(transaction, { feed, registry }, events, now);
    let added = 0;
    const queued: Enqueued[] = [];
    for (const { event, eventId, cloudEvent, token, orphan } of events) {
      const key = orphan?.key ?? inserted.get(eventId);
      if (key === undefined) continue;
      const channels = channelsFor(without(recipients, orphan), cloudEvent);
      if (orphan) await mineAgain(transaction, key, event, cloudEvent);
      queued.push(...channels.map((channel) => ({ channel, token, event: key })));
      const second = again.get(key);
      if (second !== undefined && orphan !== undefined) {
        const retracted = recipients.filter(({ channel }) => orphan.retractedFor.has(channel));
        for (const channel of channelsFor(retracted, second.cloudEvent))
          queued.push({ channel, token, event: second.key });
      }
      if (orphan === undefined || orphan.deliveredTo.size === 0) added++;
    }
    // One call locks the queues of the whole range in the order of their keys.
    await enqueue(transaction, queued, now);
    return { added, channels: [...new Set(queued.map(({ channel }) => channel))] };
  });
}

/** The recipients to which the orphan was neither delivered nor retracted. */
function without(recipients: readonly Recipient[], orphan: Matched['orphan']): readonly Recipient[] {
  if (orphan === undefined) return recipients;
  const { deliveredTo, retractedFor } = orphan;
  return recipients.filter(({ channel }) => !deliveredTo.has(channel) && !retractedFor.has(channel));
}

/** Marks an orphan as on the chain again, and replaces its body: a channel may receive it later. */
async function mineAgain(
  db: Transaction<Schema>,
  key: number,
  { blockNumber, blockHash, blockLogIndex }: RegistryEvent,
  cloudEvent: CloudEvent,
): Promise<void> {
  await db
    .updateTable('events')
    .set({
      orphaned_at: null,
      block_number: blockNumber,
      block_hash: blockHash,
      log_index: blockLogIndex,
      body: JSON.stringify(cloudEvent),
    })
    .where('id', '=', key)
    .execute();
}
