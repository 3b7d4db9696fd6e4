import type { Kysely } from 'kysely';
import type { Schema } from '../database/schema';
import { aboutOf } from '../events/cloud-event';
import { deliveryStatesOf } from '../outbox/delivery-states';
import { findFeeds } from '../outbox/find-feeds';
import { idOfBytes } from '../outbox/stored-ids';
import { shortType } from '../events/event-types';
import { shownState } from './shown-events';
import type { EventView } from './views';

/** Blocks per statement: both engines limit the parameters. */
const BATCH = 500;

/**
 * The events of a token in these blocks, by transaction hash and in the order of the log, with their
 * deliveries. Those whose blocks were orphaned are left out.
 *
 * @param registry chain id and address.
 */
export async function eventsOfToken(
  db: Kysely<Schema>,
  registry: string,
  tokenId: bigint,
  blocks: readonly number[],
): Promise<ReadonlyMap<string, EventView[]>> {
  const [name = ''] = await findFeeds(db, registry);
  const token = await db
    .selectFrom('tokens')
    .innerJoin('feeds', 'feeds.id', 'tokens.feed')
    .select(['tokens.id', 'tokens.feed'])
    .where('feeds.feed', '=', name)
    .where('tokens.token_id', '=', tokenId.toString())
    .executeTakeFirst();
  const byTransaction = new Map<string, EventView[]>();
  if (token === undefined) return byTransaction;
  for (let from = 0; from < blocks.length; from += BATCH) {
    const rows = await db
      .selectFrom('events')
      .select(['id', 'token', 'event_id', 'type', 'body', 'orphaned_at as orphanedAt'])
      .where('feed', '=', token.feed)
      .where('block_number', 'in', blocks.slice(from, from + BATCH))
      .where('token', '=', token.id)
      .where('orphaned_at', 'is', null)
      .orderBy('block_number')
      .orderBy('log_index')
      .orderBy('id')
      .execute();
    const states = await deliveryStatesOf(db, token.feed, rows);
    for (const { id, event_id, type, body } of rows) {
      const deliveries = states
        .filter(({ event }) => event === id)
        .map((found) => {
          const { subscription, attempts } = found;
          const lastError = attempts.at(-1)?.error ?? null;
          return { subscription, state: shownState(found), attempts: attempts.length, lastError };
        });
      const { transactionHash } = aboutOf(body);
      const view = { id: idOfBytes(event_id), type: shortType(type), deliveries };
      byTransaction.set(transactionHash, [...(byTransaction.get(transactionHash) ?? []), view]);
    }
  }
  return byTransaction;
}
