import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import type { RegistryEvent } from '../registry/registry-event';
import { eventIdOf, typeOf, type CloudEvent, type RegistryIdentity } from './cloud-event';

/** An event that has to be announced, and the id for it. */
interface Unannounced {
  event: RegistryEvent;
  eventId: string;
}

interface Orphan {
  eventId: string;
  transactionHash: string;
  content: string;
}

/**
 * Finds the events that were delivered already, before a reorganisation took their block away and their
 * transaction was mined again. Its logs may stand at other indexes of the new block, so an event is
 * recognised by what it says. Such an event keeps its id, is on the chain again, and is not announced a
 * second time.
 *
 * @returns the others. Should one of them have come to stand where an orphan of another content stood that
 *   was sent, then the id by chain, transaction and log is taken, and subscribers would take the event for
 *   known: its id is made with the block's hash as well.
 */
export async function matchOrphans(
  db: Transaction<Schema>,
  feed: string,
  registry: RegistryIdentity,
  events: readonly RegistryEvent[],
): Promise<Unannounced[]> {
  const orphans = events.length === 0 ? [] : await orphansOf(db, feed);
  const taken = new Set(orphans.map(({ eventId }) => eventId));
  const attempted = events.length === 0 ? new Map<string, string>() : await attemptedOf(db, feed);
  const unannounced: Unannounced[] = [];
  for (const event of events) {
    const { transactionHash, logIndex, blockHash } = event;
    const content = contentOf(typeOf(event), event.tokenId ?? 0n, event.payload);
    const at = orphans.findIndex(
      (orphan) => orphan.transactionHash === transactionHash && orphan.content === content,
    );
    const [orphan] = at < 0 ? [] : orphans.splice(at, 1);
    if (orphan) {
      await minedAgain(db, feed, orphan.eventId, event);
      continue;
    }
    const id = eventIdOf(registry.chainId, transactionHash, logIndex);
    const isTaken = taken.has(id) || (attempted.get(id) ?? content) !== content;
    const eventId = isTaken ? eventIdOf(registry.chainId, transactionHash, logIndex, blockHash) : id;
    unannounced.push({ event, eventId });
  }
  return unannounced;
}

/** Rarely any: an index holds just these rows. */
async function orphansOf(db: Transaction<Schema>, feed: string): Promise<Orphan[]> {
  const rows = await db
    .selectFrom('events')
    .select(['event_id', 'transaction_hash', 'body'])
    .where('feed', '=', feed)
    .where('orphaned_at', 'is not', null)
    .orderBy('log_index')
    .execute();
  return rows.map(({ event_id, transaction_hash, body }) => ({
    eventId: event_id,
    transactionHash: transaction_hash,
    content: contentOfBody(body),
  }));
}

/**
 * What events said that may have reached the subscriber without the service knowing, and that were withdrawn:
 * by id.
 */
async function attemptedOf(db: Transaction<Schema>, feed: string): Promise<ReadonlyMap<string, string>> {
  const rows = await db
    .selectFrom('orphans')
    .select(['event_id', 'body'])
    .where('feed', '=', feed)
    .where('outcome', '=', 'attempted')
    .execute();
  return new Map(rows.map(({ event_id, body }) => [event_id, contentOfBody(body)]));
}

function contentOfBody(body: string): string {
  const { type, data } = JSON.parse(body) as CloudEvent;
  return contentOf(type, BigInt(data.tokenId), data.payload);
}

/** What an event says, wherever it stands. The payload's fields come in one order, from one decoder. */
function contentOf(type: string, tokenId: bigint, payload: object): string {
  return JSON.stringify([type, tokenId.toString(), payload]);
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
