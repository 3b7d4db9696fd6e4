import { expect } from 'chai';
import type { Database } from '../../../service/database/database';
import {
  claimQueues,
  type AttemptRecord,
  type ClaimedDelivery,
  type ClaimedQueue,
} from '../../../service/outbox/claim-queues';
import type { CloudEvent } from '../../../service/events/cloud-event';
import { channelsOf } from '../../../service/outbox/channels';
import type { OpenFeed } from '../../../service/outbox/feeds';
import { redeliver } from '../../../service/outbox/enqueue-stored';
import { rewindFeed, type Rewound } from '../../../service/outbox/rewind-feed';
import { takeTurn, type Settlement } from '../../../service/outbox/settle-queues';
import { headsOfQueues, storedLetters } from './stored-queues';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import type { OnEngine } from './engines';
import { hashOf, openSampleFeed, record, SAMPLE_FEED } from './sample-feed';

/** The next event of a claimed queue. */
export interface ClaimedHead extends ClaimedDelivery {
  queue: ClaimedQueue;
  firstAttemptedAt: number;
  /** See `tokenIn`. */
  tokenId: string;
}

/** A new outbox for each test of a suite. The test sets its time. */
export type EmptyOutbox = ReturnType<typeof emptyOutbox>;

type Selection = Parameters<typeof redeliver>[2];

export const LEASE_MS = 60_000;

/** Registers the hook that opens a feed in the empty database of each test; call it in a suite. */
export function emptyOutbox(on: OnEngine) {
  let open: { feed: OpenFeed; channel: number } | undefined;
  let leases = 0;
  const opened = (): NonNullable<typeof open> => {
    if (open === undefined) throw new Error('used outside of a test');
    return open;
  };

  beforeEach(async () => {
    const feed = await openSampleFeed(on.database);
    const [channel] = await channelsOf(on.database.db, SAMPLE_FEED);
    open = { feed, channel: channel?.channel ?? 0 };
  });

  const outbox = {
    get database(): Database {
      return on.database;
    },
    get feed(): OpenFeed {
      return opened().feed;
    },
    /** The channel of the subscription `default`. */
    get channel(): number {
      return opened().channel;
    },
    /** Epoch milliseconds. */
    now: 1_000_000,
    /** Records events as a range that ends with the block. Returns the number of events that are new. */
    store: (toBlock: number, events: RegistryEvent[] = [], branch = 'a'): Promise<number> =>
      record(outbox.database, outbox.feed, toBlock, events, outbox.now, branch),
    rewind: (toBlock: number): Promise<Rewound | 'in flight'> =>
      rewindFeed(outbox.database, outbox.feed, { number: toBlock, hash: hashOf(toBlock) }, outbox.now),
    /** The result of a rewind, which no delivery under way may hinder. */
    rewound: async (toBlock: number): Promise<Rewound> => {
      const rewound = await outbox.rewind(toBlock);
      if (rewound === 'in flight') throw new Error('nothing should be in flight');
      return rewound;
    },
    /** Claims the next event of each due queue, of `default` unless another channel is given. */
    claim: async (limit = 100, channel = opened().channel): Promise<ClaimedHead[]> =>
      (await outbox.claimQueues(limit, 1, channel)).map(headOf),
    /** Claims whole queues, of `default` unless another channel is given. */
    claimQueues: (limit = 100, perQueue = 32, channel = opened().channel): Promise<ClaimedQueue[]> => {
      const lease = `lease ${++leases}`;
      const due = { channel, lease, limit, perQueue, now: outbox.now, leaseMs: LEASE_MS };
      return claimQueues(on.database.db, due);
    },
    /** Settles queues of one channel. Returns the settlements of those that another process has claimed. */
    settle: async (...settlements: Settlement[]): Promise<Settlement[]> => {
      const channel = settlements[0]?.queue.channel ?? opened().channel;
      const nothing = { channel, lease: 'none', limit: 0, perQueue: 0, now: outbox.now, leaseMs: 0 };
      return (await takeTurn(on.database, { settlements, claim: nothing, mayBeDue: true })).lost;
    },
    /** Claims the due queues and delivers their events, until none is due. Returns the events. */
    deliverAll: async (channel = opened().channel): Promise<ClaimedHead[]> => {
      const all: ClaimedHead[] = [];
      for (;;) {
        const queues = await outbox.claimQueues(100, 32, channel);
        if (queues.length === 0) return all;
        const settlements = queues.map((queue) => {
          const heads = queue.deliveries.map((one) => ({ ...headOf(queue), ...one }));
          all.push(...heads);
          const done = attempt(outbox.now);
          return { queue, delivered: queue.deliveries.map((delivery) => ({ delivery, attempt: done })) };
        });
        expect(await outbox.settle(...settlements)).to.deep.equal([]);
      }
    },
    /** Sends stored events again, to `default` unless another channel is given. */
    redeliver: (selection: Selection, channel = opened().channel): ReturnType<typeof redeliver> =>
      redeliver(outbox.database, { feed: outbox.feed.id, channel }, selection, outbox.now),
    /** The token queues that are not empty. */
    waiting: (): ReturnType<typeof headsOfQueues> => headsOfQueues(outbox.database.db, [SAMPLE_FEED]),
    deadLetters: (): ReturnType<typeof storedLetters> => storedLetters(outbox.database.db, [SAMPLE_FEED]),
  };
  return outbox;
}

/** The first event of a claimed queue. */
export function headOf(queue: ClaimedQueue): ClaimedHead {
  const [delivery] = queue.deliveries;
  if (delivery === undefined) throw new Error('a claimed queue has events');
  return { ...delivery, queue, firstAttemptedAt: queue.firstAttemptedAt, tokenId: tokenIn(delivery) };
}

/** The token of an event in decimals. Empty for events of the registry itself. */
export function tokenIn({ body }: Pick<ClaimedDelivery, 'body'>): string {
  const { tokenId, tokenIdHex } = (JSON.parse(body) as CloudEvent).data;
  return tokenIdHex === undefined ? '' : tokenId;
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
  const settled = failed(head, now);
  return { ...settled, ...(settled.failed && { failed: { ...settled.failed, nextAttemptAt: undefined } }) };
}

/** Nothing was sent. */
export function released({ queue }: ClaimedHead): Settlement {
  return { queue, delivered: [] };
}

/** Block numbers in the bodies of deliveries. */
export function blocksOf(deliveries: readonly Pick<ClaimedDelivery, 'body'>[]): number[] {
  return deliveries.map(({ body }) => (JSON.parse(body) as CloudEvent).data.blockNumber);
}
