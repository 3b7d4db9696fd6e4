import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { ServiceEvent } from '../../../client/events';
import type { Database } from '../../../service/database/database';
import { addChannels, channelsOf } from '../../../service/outbox/channels';
import { claimQueues, type ClaimedQueue } from '../../../service/outbox/claim-queues';
import { takeTurn, type Settlement } from '../../../service/outbox/settle-queues';
import { subscriptionWith } from '../subscription-body';
import { attempt, LEASE_MS, type EmptyOutbox } from './empty-outbox';

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

/** Acts as the delivery worker of a channel. */
export interface Subscriber {
  readonly channel: number;
  /** Claims the due queues, as a process does that dies before it settles them. */
  claim(this: void): Promise<ClaimedQueue[]>;
  /** Delivers all that is due, in rounds of one event of each queue, and returns the events. */
  takeAll(this: void): Promise<ServiceEvent[]>;
  /** Delivers the next event of each queue. */
  takeNext(this: void): Promise<ServiceEvent[]>;
  /** Attempts the next event of each queue and fails. */
  refuse(this: void): Promise<void>;
  /** The next event of each queue becomes a dead letter. */
  bury(this: void): Promise<void>;
}

/** The worker of a channel of the outbox. */
export function subscriberOf(outbox: EmptyOutbox, channel: number): Subscriber {
  const claimOf = (perQueue: number): Promise<ClaimedQueue[]> => {
    const { database, now } = outbox;
    const claim = { channel, lease: randomUUID(), limit: 100, perQueue, now, leaseMs: LEASE_MS };
    return claimQueues(database, database.db, claim);
  };
  const settle = async (settlements: readonly Settlement[]): Promise<void> => {
    const claim = { channel, lease: 'none', limit: 0, perQueue: 0, now: outbox.now, leaseMs: 0 };
    await takeTurn(outbox.database, { settlements, claim, mayBeDue: true });
  };
  const failHeads = async (nextAttemptAt: number | undefined): Promise<void> => {
    const queues = await claimOf(1);
    const failure = attempt(outbox.now, 'answered 500');
    await settle(
      queues.flatMap((queue) =>
        queue.deliveries.map((delivery) => {
          return { queue, delivered: [], failed: { delivery, attempt: failure, nextAttemptAt } };
        }),
      ),
    );
  };
  const takeNext = async (): Promise<ServiceEvent[]> => {
    const queues = await claimOf(1);
    await settle(
      queues.map((queue) => ({
        queue,
        delivered: queue.deliveries.map((delivery) => ({ delivery, attempt: attempt(outbox.now) })),
      })),
    );
    const bodies = queues.flatMap(({ deliveries }) => deliveries.map(({ body }) => body));
    return bodies.map((body) => JSON.parse(body) as ServiceEvent);
  };
  return {
    channel,
    claim: () => claimOf(32),
    takeNext,
    async takeAll() {
      const all: ServiceEvent[] = [];
      for (let taken = await takeNext(); taken.length > 0; taken = await takeNext()) all.push(...taken);
      return all;
    },
    refuse: () => failHeads(outbox.now),
    bury: () => failHeads(undefined),
  };
}
