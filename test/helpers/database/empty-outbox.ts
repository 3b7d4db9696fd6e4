import type { Database } from '../../../service/database/database';
import { claimDeliveries, type ClaimedDelivery } from '../../../service/outbox/claim-deliveries';
import type { CloudEvent } from '../../../service/outbox/cloud-event';
import type { OpenFeed } from '../../../service/outbox/feed-cursor';
import type { AttemptRecord, Settlement } from '../../../service/outbox/settle-deliveries';
import { takeTurn } from '../../../service/outbox/take-turn';
import { type ENGINES, newState, openState, type State } from './engines';
import { openSampleFeed, SAMPLE_FEED } from './sample-feed';

/** A new outbox for each test of a suite. The test sets its time. */
export interface EmptyOutbox {
  readonly database: Database;
  readonly feed: OpenFeed;
  /** Epoch milliseconds. */
  now: number;
  claim(this: void, limit?: number): Promise<ClaimedDelivery[]>;
  /** Returns the settlements of deliveries that another process has claimed. */
  settle(this: void, ...settlements: Settlement[]): Promise<Settlement[]>;
}

export const LEASE_MS = 60_000;

/**
 * Registers the hooks that create and remove the outbox; call it in a `describe`. Skips the suite if the
 * engine is not installed.
 */
export function emptyOutbox(engine: (typeof ENGINES)[number]): EmptyOutbox {
  let state: State | undefined;
  let open: { database: Database; feed: OpenFeed } | undefined;
  let leases = 0;
  const opened = (): NonNullable<typeof open> => {
    if (open === undefined) throw new Error('used outside of a test');
    return open;
  };

  beforeEach(async function () {
    state = await newState(engine);
    if (state === undefined) return this.skip();
    const database = await openState(state);
    open = { database, feed: await openSampleFeed(database) };
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
    now: 1_000_000,
    claim(limit = 100) {
      const { database } = opened();
      const lease = `lease ${++leases}`;
      const due = { feed: SAMPLE_FEED, lease, limit, now: outbox.now, leaseMs: LEASE_MS };
      return claimDeliveries(database, database.db, due);
    },
    async settle(...settlements) {
      const nothing = { feed: SAMPLE_FEED, lease: 'none', limit: 0, now: outbox.now, leaseMs: 0 };
      return (await takeTurn(opened().database, { settlements, claim: nothing })).lost;
    },
  };
  return outbox;
}

/** An attempt that succeeded, or failed with status 500. */
export function attempt(now: number, error?: string): AttemptRecord {
  return { attemptedAt: now, milliseconds: 5, status: error ? 500 : 200, error };
}

/** The delivery succeeded. */
export function delivered(delivery: ClaimedDelivery, now: number): Settlement {
  return { delivery, outcome: 'delivered', attempt: attempt(now) };
}

/** The delivery became a dead letter. */
export function dead(delivery: ClaimedDelivery, now: number): Settlement {
  return { delivery, outcome: 'dead', attempt: attempt(now, 'answered 500') };
}

/** Block numbers in the bodies of deliveries. */
export function blocksOf(deliveries: readonly ClaimedDelivery[]): number[] {
  return deliveries.map(({ body }) => (JSON.parse(body) as CloudEvent).data.blockNumber);
}
