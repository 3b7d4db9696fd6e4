import { sql, type Kysely, type Selectable, type Transaction } from 'kysely';
import type { RegistryName } from '../base/registry-name';
import { inBatches } from '../database/batches';
import type { Database } from '../database/database';
import type { QueuesTable, Schema } from '../database/schema';
import { aboutOf, RETRACTED_TYPE } from '../events/cloud-event';
import { retract, retractedAmong } from './announcements';
import { recipientsOf } from './recipients';
import { keepBlocks, moveCursor, registryOfFeed, type KeptBlock, type OpenFeed } from './feeds';
import {
  attemptsOf,
  eventsAfter,
  forgetLetters,
  idOf,
  idOfBytes,
  startOf,
  waitingDeliveries,
  type EventRow,
  type Sending,
} from './stored-events';

/** The result of a rewind. */
export interface Rewound {
  /** Number of undelivered events that are sent only if their transactions are mined again. */
  withdrawn: number;
  /** The events that were delivered, or may have been. */
  orphaned: OrphanedEvent[];
}

interface OrphanedEvent {
  eventId: string;
  type: string;
  tokenId: string;
  transactionHash?: string;
  blockNumber: number;
  /** `attempted`: no attempt is known to have succeeded, but the receiver may have got it. */
  outcome: 'delivered' | 'attempted';
}

/**
 * Rewinds a feed to a block that is still on the chain, in one transaction. Undelivered events of later
 * blocks are withdrawn from the queues, delivered ones are recorded as orphans. The rows of all stay, marked
 * as orphaned. Channels with retractions get a retraction of each orphan that they received, or may have;
 * those who fetch with retractions get one of each event.
 *
 * @returns `in flight`, with nothing changed, while an event of an affected token is being delivered: the
 *   outcome of the delivery decides whether the event is an orphan. Hold the feed, so that no delivery
 *   begins, and call this again.
 */
export async function rewindFeed(
  database: Database,
  open: OpenFeed,
  ancestor: KeptBlock,
  now: number,
): Promise<Rewound | 'in flight'> {
  const { id: feed } = open;
  return database.db.transaction().execute(async (transaction) => {
    await moveCursor(transaction, open);
    // Read before the queues are locked, as everywhere: any other order could deadlock.
    const { rules } = await recipientsOf(database, transaction, feed);
    const rows = await eventsAfter(transaction, feed, startOf(ancestor.number + 1))
      .where('orphaned_at', 'is', null)
      // A retraction names a block but is not an event in it.
      .where('type', '<>', RETRACTED_TYPE)
      .execute();
    const tokens = [...new Set(rows.map(({ token }) => token))];
    const channels = [...rules.keys()].sort((left, right) => left - right);
    const queues = await lockQueues(database, transaction, channels, tokens);
    if (queues.some((queue) => isBeingSent(queue, now))) return 'in flight';
    const orphans = new Set(rows.map(idOf));
    const attempts = await attemptsOf(transaction, [...orphans]);
    const cutOff: Sending[] = [];
    for (const queue of queues)
      for (const event of await removeFromQueue(transaction, queue, orphans, now))
        cutOff.push({ event, channel: queue.channel, isDelivered: false });
    for (const channel of new Set(queues.map((queue) => queue.channel)))
      await forgetLetters(transaction, channel, [...orphans]);
    const retracting = channels.filter((channel) => rules.get(channel)?.hasRetractions);
    await retract(transaction, feed, rows, retracting, cutOff, now);
    const rewound = await recordOrphans(transaction, feed, rows, [...attempts, ...cutOff], now);
    // Channels that were filled beyond the block are filled again from there.
    await sql`update channels set fill_block = ${ancestor.number}, fill_index = null
      where feed = ${feed} and fill_block > ${ancestor.number}`.execute(transaction);
    await sql`delete from blocks where feed = ${feed} and number > ${ancestor.number}`.execute(transaction);
    await keepBlocks(transaction, feed, [ancestor], 0);
    await moveCursor(transaction, open, ancestor.number + 1);
    return rewound;
  });
}

/**
 * Marks the events of orphaned blocks, so that they are recognised if they are mined again: a client may have
 * fetched them. Those that were sent, or may have been, are recorded as orphans.
 */
async function recordOrphans(
  db: Transaction<Schema>,
  feed: number,
  rows: readonly EventRow[],
  sendings: readonly Sending[],
  now: number,
): Promise<Rewound> {
  const originals = rows.filter(({ original }) => original === null);
  const originalOf = new Map(rows.map(({ id, original }) => [id, original ?? id]));
  const delivered = new Set(sendings.flatMap((one) => (one.isDelivered ? originalOf.get(one.event) : [])));
  // A retraction shows that an event may have been received, also if no attempt was ever recorded.
  const sent = new Set([...sendings.map(({ event }) => event), ...(await retractedAmong(db, originals))]);
  await inBatches(rows.map(idOf), (some) =>
    db.updateTable('events').set({ orphaned_at: now }).where('id', 'in', some).execute(),
  );
  const orphaned = originals
    .filter(({ id }) => sent.has(id))
    .map(({ id, type, event_id, block_number, block_hash, body }) => {
      const outcome = delivered.has(id) ? ('delivered' as const) : ('attempted' as const);
      const row = { feed, block_number, block_hash, outcome, body, orphaned_at: now };
      return { type, row: { ...row, event_id: new Uint8Array(event_id) } };
    });
  await inBatches(orphaned, (some) =>
    db
      .insertInto('orphans')
      .values(some.map(({ row }) => row))
      .onConflict((conflict) =>
        // A branch may become canonical again, and be orphaned again.
        conflict.columns(['feed', 'event_id', 'block_hash']).doUpdateSet((eb) => ({
          outcome: eb.ref('excluded.outcome'),
          orphaned_at: now,
          mined_again_in: null,
        })),
      )
      .execute(),
  );
  return {
    withdrawn: originals.filter(({ id }) => !delivered.has(id)).length,
    orphaned: orphaned.map(({ type, row: { event_id, block_number: blockNumber, outcome, body } }) => {
      return { eventId: idOfBytes(event_id), type, ...aboutOf(body), blockNumber, outcome };
    }),
  };
}

/** A token queue as it is stored. */
type Queue = Selectable<QueuesTable>;

/**
 * Reads the queues of tokens, in the order of their keys. On PostgreSQL they are locked until the transaction
 * ends.
 */
async function lockQueues(
  { engine }: Pick<Database, 'engine'>,
  db: Transaction<Schema>,
  channels: readonly number[],
  tokens: readonly number[],
): Promise<Queue[]> {
  const inOrder = [...tokens].sort((left, right) => left - right);
  const locked: Queue[] = [];
  for (const channel of channels)
    locked.push(
      ...(await inBatches(inOrder, (some) =>
        db
          .selectFrom('queues')
          .selectAll()
          .where('channel', '=', channel)
          .where('token', 'in', some)
          .orderBy('token')
          .$if(engine === 'postgres', (query) => query.forUpdate())
          .execute(),
      )),
    );
  return locked;
}

/** Whether events of the queue are being sent. */
function isBeingSent({ lease, next_attempt_at }: Queue, now: number): boolean {
  return lease !== null && (next_attempt_at ?? 0) > now;
}

/**
 * Removes events from a queue that has no delivery under way. The remaining events move up in order.
 *
 * @returns the removed events of which an attempt may have begun without being recorded, because the process
 *   died during it.
 */
async function removeFromQueue(
  db: Transaction<Schema>,
  queue: Queue,
  unwanted: ReadonlySet<number>,
  now: number,
): Promise<number[]> {
  const { channel, token, head, tail, attempts, next_attempt_at, lease, claimed_to } = queue;
  if (tail < head) return [];
  const sentTo = lease === null ? queue.sent_to : Math.max(queue.sent_to, claimed_to ?? 0);
  const waiting = await waitingDeliveries(db)
    .select(['deliveries.position', 'deliveries.event'])
    .where('queues.channel', '=', channel)
    .where('queues.token', '=', token)
    .orderBy('deliveries.position')
    .execute();
  const removed = waiting.filter(({ event }) => unwanted.has(event));
  if (removed.length === 0) return [];
  const maySent = (position: number): boolean => position <= sentTo || (position === head && attempts > 0);
  const cutOff = removed.filter(({ position }) => maySent(position));
  await sql`delete from deliveries
    where channel = ${channel} and token = ${token} and position >= ${head}`.execute(db);
  const left = waiting
    .filter(({ event }) => !unwanted.has(event))
    .map(({ event }, index) => ({ channel, token, position: head + index, event }));
  await inBatches(left, (some) => db.insertInto('deliveries').values(some).execute());
  const isHeadGone = removed[0] === waiting[0];
  const newTail = tail - removed.length;
  const nextAt = newTail < head ? null : isHeadGone ? now : next_attempt_at;
  const newSentTo = sentTo - removed.filter(({ position }) => position <= sentTo).length;
  const ofHead = isHeadGone ? sql`, attempts = 0, first_attempted_at = null` : sql``;
  await sql`update queues set tail = ${newTail}, next_attempt_at = ${nextAt}, sent_to = ${newSentTo},
    lease = null, claimed_to = null${ofHead}
    where channel = ${channel} and token = ${token}`.execute(db);
  return cutOff.map(({ event }) => event);
}

/** An event that was delivered, or may have been, before its block was orphaned. */
export interface ListedOrphan {
  registry: RegistryName;
  eventId: string;
  outcome: 'delivered' | 'attempted';
  blockNumber: number;
  blockHash: string;
  /** The body that was sent. */
  body: string;
  /** Epoch milliseconds. */
  orphanedAt: number;
  /** The block in which its transaction was mined again; null while it was not. */
  minedAgainIn: number | null;
}

/** The orphans of the given feeds, oldest first. */
export async function listOrphans(db: Kysely<Schema>, feeds: string[]): Promise<ListedOrphan[]> {
  if (feeds.length === 0) return [];
  const rows = await db
    .selectFrom('orphans')
    .innerJoin('feeds', 'feeds.id', 'orphans.feed')
    .select(['feeds.feed', 'event_id as eventId', 'outcome', 'block_number as blockNumber', 'body'])
    .select(['block_hash as blockHash', 'orphaned_at as orphanedAt', 'mined_again_in as minedAgainIn'])
    .where('feeds.feed', 'in', feeds)
    .orderBy('orphaned_at')
    .orderBy('block_number')
    .execute();
  return rows.map(({ feed, eventId, ...row }) => ({
    registry: registryOfFeed(feed),
    eventId: idOfBytes(eventId),
    ...row,
  }));
}
