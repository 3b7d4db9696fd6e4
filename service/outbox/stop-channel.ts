import type { Transaction } from 'kysely';
import type { Schema } from '../database/schema';
import { noteChange } from './change-version';

/**
 * Stops a channel whose receiver answered 410, and all other channels of its subscription, which have the
 * same sink. The registries of `default` may have different sinks, so only this channel of `default` is
 * stopped.
 *
 * A request may have been under way while the subscription was changed. Its answer says nothing of the new
 * sink, so the channel is not stopped if its subscription was changed after `changedAt`.
 *
 * Call it before queues are locked. It locks rows in the same order as changes of subscriptions, and as the
 * recording of events: any other order could deadlock.
 */
export async function stopChannel(
  db: Transaction<Schema>,
  channel: number,
  changedAt: number | undefined,
): Promise<void> {
  const row = await db
    .selectFrom('channels')
    .innerJoin('subscriptions', 'subscriptions.id', 'channels.subscription')
    .select(['channels.subscription', 'channels.state', 'definition'])
    .where('channels.id', '=', channel)
    .executeTakeFirst();
  if (row?.state !== 'active') return;
  await noteChange(db);
  const { subscription, definition } = row;
  const { changed_at } = await db
    .selectFrom('subscriptions')
    .select('changed_at')
    .where('id', '=', subscription)
    .executeTakeFirstOrThrow();
  if (changedAt !== undefined && changed_at !== changedAt) return;
  const isOfApi = definition !== null;
  if (isOfApi)
    await db
      .updateTable('subscriptions')
      .set({ state: 'gone' })
      .where('id', '=', subscription)
      .where('state', '=', 'active')
      .execute();
  await db
    .updateTable('channels')
    .set({ state: 'gone' })
    .where('state', '=', 'active')
    .where(isOfApi ? 'subscription' : 'id', '=', isOfApi ? subscription : channel)
    .execute();
}
