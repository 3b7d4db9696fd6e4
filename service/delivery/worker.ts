import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../base/clock';
import type { Database } from '../database/database';
import { messageOf } from '../base/errors';
import type { Logger } from '../base/logger';
import { makeDue, nextDueAt, releaseLease, type ClaimedDelivery } from '../outbox/claim-deliveries';
import type { Settlement } from '../outbox/settle-deliveries';
import { takeTurn } from '../outbox/take-turn';
import { attemptDelivery, type AttemptOptions } from './attempt-delivery';
import { createPace } from './pace';
import { createWakeableSleep } from '../base/wakeable-sleep';

/** Delivers the events of one feed to its webhook. */
export interface DeliveryWorker {
  /** Looks for due deliveries now: events were enqueued. */
  wake(): void;
  /** Releases the claimed deliveries that are not being sent: the feed is held. */
  hold(): void;
  /** Claims nothing more; resolves when the deliveries under way are settled. */
  stop(): Promise<void>;
}

/** Options of `startDeliveryWorker`. */
export interface DeliveryWorkerOptions extends AttemptOptions {
  database: Database;
  feed: string;
  concurrency: number;
  timeoutMs: number;
  clock: Clock;
  newId: () => string;
  logger: Logger;
}

/** Time to settle an attempt after the request timeouts, before its claim falls due again. */
const LEASE_MARGIN_MS = 10_000;
/** Deliveries are claimed ahead for this time, so that there is always one to send. */
const CLAIM_AHEAD_MS = 100;
/** Maximum number of deliveries claimed ahead, as a multiple of the concurrency. */
const CLAIM_AHEAD_MOST = 32;
/** Longest sleep. It bounds the delay of events that another process enqueued. */
const LONGEST_SLEEP_MS = 1_000;
/** Shortest sleep. A due delivery that cannot be claimed is held, or another process is claiming it. */
const SHORTEST_SLEEP_MS = 100;
const PAUSE_AFTER_DATABASE_ERROR_MS = 1_000;
const CHECK_CLOCK_EVERY_MS = 60_000;
/**
 * Requests still under way this long after the stop are aborted, so that they are settled before the process
 * ends.
 */
const STOP_WITHIN_MS = 8_000;

/**
 * Starts the worker. It claims the next deliveries in the same transaction that settles the ended ones,
 * because a commit costs as much as many deliveries. When there is nothing left to send, it settles at once.
 */
export function startDeliveryWorker(options: DeliveryWorkerOptions): DeliveryWorker {
  const { database, feed, concurrency, clock, client, logger } = options;
  const leaseMs = 2 * options.timeoutMs + LEASE_MARGIN_MS;
  const sleeper = createWakeableSleep();
  const pace = createPace(concurrency, concurrency * CLAIM_AHEAD_MOST, CLAIM_AHEAD_MS);
  const claimed: ClaimedDelivery[] = [];
  let settlements: Settlement[] = [];
  /** The lease of a claim that failed: it may have been committed all the same. */
  let lostClaim: string | undefined;
  let checkedClockAt = -Infinity;
  let underWay = 0;
  let holds = 0;
  let stopped = false;

  function begin(): void {
    while (!stopped && underWay < concurrency) {
      const delivery = claimed.shift();
      if (delivery === undefined) break;
      // Too little of the lease is left, because earlier deliveries took long. The delivery is released.
      if (delivery.leasedUntil - clock.now() < options.timeoutMs + LEASE_MARGIN_MS / 2) {
        settlements.push(released(delivery));
        continue;
      }
      underWay++;
      void attemptDelivery(options, delivery).then(ended);
    }
  }

  function ended(settlement: Settlement): void {
    underWay--;
    settlements.push(stopped ? dueAtOnce(settlement, clock.now()) : settlement);
    pace.ended();
    begin();
    // While there is enough to send, ended deliveries wait to be settled together with others.
    if (stopped || claimed.length <= pace.ahead() / 2) sleeper.wake();
  }

  async function turn(): Promise<void> {
    if (stopped) settlements.push(...claimed.splice(0).map(released));
    const limit = stopped ? 0 : Math.max(concurrency - underWay, 0) + pace.ahead() - claimed.length;
    if (limit <= 0 && settlements.length === 0 && lostClaim === undefined) return;
    const holdsBefore = holds;
    const lease = options.newId();
    const settling = settlements;
    settlements = [];
    try {
      if (lostClaim !== undefined)
        await releaseLease(database.db, { feed, lease: lostClaim, now: clock.now() });
      lostClaim = undefined;
      const claim = { feed, lease, limit: Math.max(limit, 0), now: clock.now(), leaseMs };
      const taken = await takeTurn(database, { settlements: settling, claim });
      for (const { delivery } of taken.lost) {
        logger.warn({ eventId: delivery.eventId }, 'another process has claimed this delivery meanwhile');
      }
      if (holds === holdsBefore) {
        claimed.push(...taken.claimed);
      } else {
        // The feed was held while the claim was under way.
        settlements.push(...taken.claimed.map(released));
        sleeper.wake();
      }
      begin();
    } catch (error) {
      settlements.unshift(...settling);
      lostClaim ??= lease;
      throw error;
    }
  }

  async function step(): Promise<void> {
    // Deliveries that end in the same tick are settled together.
    await setImmediate();
    if (performance.now() - checkedClockAt > CHECK_CLOCK_EVERY_MS) {
      const longestWaitMs = Math.max(leaseMs, options.schedule.maxDelayMs);
      await makeDue(database.db, { feed, now: clock.now(), longestWaitMs });
      checkedClockAt = performance.now();
    }
    await turn();
    const dueAt = stopped || claimed.length > 0 ? undefined : await nextDueAt(database.db, feed);
    const inMs = Math.max((dueAt ?? Infinity) - clock.now(), SHORTEST_SLEEP_MS);
    await sleeper.sleep(Math.min(inMs, LONGEST_SLEEP_MS));
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopped || underWay > 0 || settlements.length > 0 || claimed.length > 0) {
      sleeper.reset();
      try {
        await step();
        failures = 0;
      } catch (error) {
        logger.error({ error }, `deliveries cannot be claimed or settled: ${messageOf(error)}`);
        // Deliveries that are not settled at the stop are sent again after the next start.
        if (stopped && ++failures > 1) return;
        sleeper.reset();
        await sleeper.sleep(PAUSE_AFTER_DATABASE_ERROR_MS);
      }
    }
  }

  const finished = run();
  return {
    wake: sleeper.wake,
    hold() {
      holds++;
      settlements.push(...claimed.splice(0).map(released));
      sleeper.wake();
    },
    async stop() {
      stopped = true;
      sleeper.wake();
      const patience = setTimeout(() => client.abort(), STOP_WITHIN_MS);
      await finished;
      clearTimeout(patience);
    },
  };
}

function released(delivery: ClaimedDelivery): Settlement {
  return { delivery, outcome: 'released' };
}

/** An attempt that the stop aborted is retried right after the next start. */
function dueAtOnce(settlement: Settlement, now: number): Settlement {
  return settlement.outcome === 'failed' ? { ...settlement, nextAttemptAt: now } : settlement;
}
