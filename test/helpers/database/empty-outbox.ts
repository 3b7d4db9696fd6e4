import type { Database } from '../../../service/database/database';
import { claimQueues, type ClaimedDelivery, type ClaimedQueue } from '../../../service/outbox/claim-queues';
import type { CloudEvent } from '../../../service/events/cloud-event';
import { channelsOf } from '../../../service/outbox/channels';
import type { OpenFeed } from '../../../service/outbox/feeds';
import { takeTurn, type AttemptRecord, type Settlement } from '../../../service/outbox/settle-queues';
import { newState, openState, type ENGINES, type State } from './engines';
import { openSampleFeed, SAMPLE_FEED } from './sample-feed';

/** The next event of a claimed queue. */
export interface ClaimedHead extends ClaimedDelivery {
  queue: ClaimedQueue;
  firstAttemptedAt: number;
}

/** A new outbox for each test of a suite. The test sets its time. */
export interface EmptyOutbox {
  readonly database: Database;
  readonly feed: OpenFeed;
  /** Epoch milliseconds. */
  now: number;
  /** The channel of the subscription `default`. */
  readonly channel: number;
  /** Claims the next event of each due queue. */
  claim(this: void, limit?: number): Promise<ClaimedHead[]>;
  /** Claims whole queues, of `default` unless another channel is given. */
  claimQueues(this: void, limit?: number, perQueue?: number, channel?: number): Promise<ClaimedQueue[]>;
  /** Settles queues of one channel. Returns the settlements of those that another process has claimed. */
  settle(this: void, ...settlements: Settlement[]): Promise<Settlement[]>;
}

export const LEASE_MS = 60_000;

/**
 * Registers the hooks that create and remove the outbox; call it in a `describe`. Skips the suite if the
 * engine is not installed.
 */
export function emptyOutbox(engine: (typeof ENGINES)[number]): EmptyOutbox {
  let state: State | undefined;
  let open: { database: Database; feed: OpenFeed; channel: number } | undefined;
  let leases = 0;
  const opened = (): NonNullable<typeof open> => {
    if (open === undefined) throw new Error('used outside of a test');
    return open;
  };

  beforeEach(async function () {
    state = await newState(engine);
    if (state === undefined) return this.skip();
    const database = await openState(state);
    const feed = await openSampleFeed(database);
    const [channel] = await channelsOf(database.db, SAMPLE_FEED);
    open = { database, feed, channel: channel?.channel ?? 0 };
  });

  afterEach(async () => {
    await open?.database.close();
    await state?.remove();
    open = undefined;
  });

  const outbox: EmptyOutbox = {
    get database() {
      return opened().database;
    },
    get feed() {
      return opened().feed;
    },
    get channel() {
      return opened().channel;
    },
    now: 1_000_000,
    async claim(limit = 100) {
      const queues = await outbox.claimQueues(limit, 1);
      return queues.flatMap((queue) =>
        queue.deliveries.map((delivery) => ({
          ...delivery,
          queue,
          firstAttemptedAt: queue.firstAttemptedAt,
        })),
      );
    },
    claimQueues(limit = 100, perQueue = 32, channel = opened().channel) {
      const { database } = opened();
      const lease = `lease ${++leases}`;
      const due = { channel, lease, limit, perQueue, now: outbox.now, leaseMs: LEASE_MS };
      return claimQueues(database, database.db, due);
    },
    async settle(...settlements) {
      const channel = settlements[0]?.queue.channel ?? opened().channel;
      const nothing = { channel, lease: 'none', limit: 0, perQueue: 0, now: outbox.now, leaseMs: 0 };
      return (await takeTurn(opened().database, { settlements, claim: nothing, mayBeDue: true })).lost;
    },
  };
  return outbox;
}

/** An attempt that succeeded, or failed with status 500. */
export function attempt(now: number, error?: string): AttemptRecord {
  return { attemptedAt: now, milliseconds: 5, status: error ? 500 : 200, error };
}

/** The delivery succeeded. */
export function delivered(head: ClaimedHead, now: number): Settlement {
  return { queue: head.queue, delivered: [{ delivery: head, attempt: attempt(now) }] };
}

/** The delivery failed and is tried again at a time. */
export function failed(head: ClaimedHead, now: number, nextAttemptAt = now): Settlement {
  const failure = { delivery: head, attempt: attempt(now, 'answered 500'), nextAttemptAt };
  return { queue: head.queue, delivered: [], failed: failure };
}

/** The delivery became a dead letter. */
export function dead(head: ClaimedHead, now: number): Settlement {
  const failure = { delivery: head, attempt: attempt(now, 'answered 500'), nextAttemptAt: undefined };
  return { queue: head.queue, delivered: [], failed: failure };
}

/** Nothing was sent. */
export function released({ queue }: ClaimedHead): Settlement {
  return { queue, delivered: [] };
}

/** Block numbers in the bodies of deliveries. */
export function blocksOf(deliveries: readonly Pick<ClaimedDelivery, 'body'>[]): number[] {
  return deliveries.map(({ body }) => (JSON.parse(body) as CloudEvent).data.blockNumber);
}
