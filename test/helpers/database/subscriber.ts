import { randomUUID } from 'node:crypto';
import type { ServiceEvent } from '../../../client/events';
import type { Database } from '../../../service/database/database';
import { inBatches } from '../../../service/database/batches';
import { noteChange } from '../../../service/outbox/changes';
import { addChannels, channelsOf, joinedChannels } from '../../../service/outbox/channels';
import { subscriptionWith } from '../subscription-body';
import { dead, delivered, failed, type ClaimedHead, type EmptyOutbox } from './empty-outbox';

/** Adds a subscription with these members. */
export async function addSubscription(
  database: Pick<Database, 'db'>,
  members: object,
  name: string,
): Promise<void> {
  await addSubscriptions(database, [{ members, name }]);
}

/** Adds subscriptions with these members. */
export async function addSubscriptions(
  { db }: Pick<Database, 'db'>,
  subscriptions: readonly { members: object; name: string }[],
): Promise<void> {
  await inBatches(subscriptions, async (some) => {
    const rows = some.map(({ members, name }) => ({
      name,
      definition: definitionOf(members),
      secrets: null,
    }));
    const times = { created_at: 1, changed_at: 1 };
    await db
      .insertInto('subscriptions')
      .values(rows.map((row) => ({ ...row, ...times })))
      .execute();
    return [];
  });
  // It notes the change.
  await addChannels(db, 1);
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
  database: Pick<Database, 'db'>,
  channel: number,
  members: object,
): Promise<void> {
  const { name } = await joinedChannels(database.db)
    .select('subscriptions.name')
    .where('channels.id', '=', channel)
    .executeTakeFirstOrThrow();
  await replaceSubscription(database, name, members);
}

/** Gives a subscription these members. */
export async function replaceSubscription(
  { db }: Pick<Database, 'db'>,
  name: string,
  members: object,
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await noteChange(transaction, name);
    await transaction
      .updateTable('subscriptions')
      .set({ definition: definitionOf(members) })
      .where('name', '=', name)
      .execute();
  });
}

function definitionOf(members: object): string {
  return JSON.stringify(subscriptionWith(members));
}

/** It acts as the delivery worker of a channel. */
export interface Subscriber {
  channel: number;
  /** Claims the due queues, as a process does that dies before it settles them. */
  claim(): ReturnType<EmptyOutbox['claimQueues']>;
  /** Delivers the next event of each queue. */
  takeNext(this: void): Promise<ServiceEvent[]>;
  /** Delivers all that is due, and returns the events. */
  takeAll(): Promise<ServiceEvent[]>;
  /** Attempts the next event of each queue and fails. */
  refuse(): Promise<void>;
  /** The next event of each queue becomes a dead letter. */
  bury(): Promise<void>;
}

export function subscriberOf(outbox: EmptyOutbox, channel: number): Subscriber {
  const nextOfEach = (): Promise<ClaimedHead[]> => outbox.claim(100, channel);
  const takeNext = async (): Promise<ServiceEvent[]> => {
    const heads = await nextOfEach();
    await outbox.settle(...heads.map((head) => delivered(head, outbox.now)));
    return heads.map(({ body }) => JSON.parse(body) as ServiceEvent);
  };
  return {
    channel,
    claim: () => outbox.claimQueues(100, 32, channel),
    takeNext,
    takeAll: async (): Promise<ServiceEvent[]> =>
      (await outbox.deliverAll(channel)).map(({ body }) => JSON.parse(body) as ServiceEvent),
    async refuse(): Promise<void> {
      await outbox.settle(...(await nextOfEach()).map((head) => failed(head, outbox.now)));
    },
    async bury(): Promise<void> {
      await outbox.settle(...(await nextOfEach()).map((head) => dead(head, outbox.now)));
    },
  };
}
