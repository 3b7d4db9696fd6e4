import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import { unusedIds } from './announcements';
import { eventIdOf, toCloudEvent, type CloudEvent, type RegistryIdentity } from '../events/cloud-event';
import { insertEvents } from './insert-events';
import type { Matched } from './match-orphans';
import { keyIn } from './tokens';

/**
 * Stores a further announcement of each event that was retracted for a channel and is on the chain again. The
 * id is new, because a subscriber drops an event whose id it knows, or knows to be retracted.
 *
 * @returns the announcements by the key of their original.
 */
export async function announceAgain(
  db: Transaction<Schema>,
  { feed, registry }: { feed: number; registry: RegistryIdentity },
  events: readonly (Matched & { token: number })[],
  now: number,
): Promise<ReadonlyMap<number, { key: number; cloudEvent: CloudEvent }>> {
  const retracted = events.flatMap(({ event, orphan, token }) =>
    orphan !== undefined && orphan.retractedFor.size > 0 ? { event, original: orphan.key, token } : [],
  );
  if (retracted.length === 0) return new Map();
  const ids = await unusedIds(
    db,
    feed,
    retracted.map(({ event: { transactionHash, logIndex, blockHash } }) =>
      eventIdOf(registry.chainId, transactionHash, logIndex, blockHash),
    ),
  );
  const announced = retracted.map(({ event, token, original }, index) => ({
    cloudEvent: toCloudEvent(event, registry, ids[index]),
    token,
    at: event,
    original,
  }));
  const keys = await insertEvents(db, feed, announced, now);
  return new Map(
    announced.map(({ original, cloudEvent }) => [original, { key: keyIn(keys, cloudEvent.id), cloudEvent }]),
  );
}
