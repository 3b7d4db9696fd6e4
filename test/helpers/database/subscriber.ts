import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { ServiceEvent } from '../../../client/events';
import type { Database } from '../../../service/database/database';
import { addChannels, channelsOf } from '../../../service/outbox/channels';
import { subscriptionWith } from '../subscription-body';
import { dead, delivered, failed, type ClaimedHead, type EmptyOutbox } from './empty-outbox';

/** Adds a subscription with these members. */
export async function addSubscription(
  { db }: Pick<Database, 'db'>,
  members: object,
  name: string,
): Promise<void> {
  await db
    .insertInto('subscriptions')
    .values({ name, definition: definitionOf(members), secrets: null, created_at: 1, changed_at: 1 })
    .execute();
  await addChannels(db, 1);
  await noteChange(db);
}

/** Adds a subscription with these members, and returns its channel for a feed. */
export async function subscribe(
  database: Pick<Database, 'db'>,
  feed: string,
  members: object,
): Promise<number> {
  const name = randomUUID();
  await addSubscription(database, members, name);
  const [channel] = await channelsOf(database.db, feed, name);
  if (channel === undefined) throw new Error('the subscription has no channel');
  return channel.channel;
}

/** Gives the subscription of a channel these members. */
export async function changeSubscription(
  { db }: Pick<Database, 'db'>,
  channel: number,
  members: object,
): Promise<void> {
  await db
    .updateTable('subscriptions')
    .set({ definition: definitionOf(members) })
    .where('id', 'in', (eb) =>
      eb.selectFrom('channels').select('subscription').where('channels.id', '=', channel),
    )
    .execute();
  await noteChange(db);
}

function definitionOf(members: object): string {
  return JSON.stringify(subscriptionWith(members));
}

async function noteChange(db: Database['db']): Promise<void> {
  await db
    .updateTable('subscription_changes')
    .set({ version: sql<number>`version + 1` })
    .execute();
}

export type Subscriber = ReturnType<typeof subscriberOf>;

/** Acts as the delivery worker of a channel. */
export function subscriberOf(outbox: EmptyOutbox, channel: number) {
  const nextOfEach = (): Promise<ClaimedHead[]> => outbox.claim(100, channel);
  const takeNext = async (): Promise<ServiceEvent[]> => {
    const heads = await nextOfEach();
    await outbox.settle(...heads.map((head) => delivered(head, outbox.now)));
    return heads.map(({ body }) => JSON.parse(body) as ServiceEvent);
  };
  return {
    channel,
    /** Claims the due queues, as a process does that dies before it settles them. */
    claim: () => outbox.claimQueues(100, 32, channel),
    /** Delivers the next event of each queue. */
    takeNext,
    /** Delivers all that is due, and returns the events. */
    takeAll: async (): Promise<ServiceEvent[]> =>
      (await outbox.deliverAll(channel)).map(({ body }) => JSON.parse(body) as ServiceEvent),
    /** Attempts the next event of each queue and fails. */
    async refuse(): Promise<void> {
      await outbox.settle(...(await nextOfEach()).map((head) => failed(head, outbox.now)));
    },
    /** The next event of each queue becomes a dead letter. */
    async bury(): Promise<void> {
      await outbox.settle(...(await nextOfEach()).map((head) => dead(head, outbox.now)));
    },
  };
}
