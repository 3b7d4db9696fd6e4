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
  /** Looks for due deliveries now: something was enqueued. */
  wake(): void;
  /** Gives back what is claimed and not sent yet: the feed is held. */
  hold(): void;
  /** Claims nothing more; resolves when what is under way is settled. */
  stop(): Promise<void>;
}

/** What the worker needs. */
export interface DeliveryWorkerOptions extends AttemptOptions {
  database: Database;
  feed: string;
  concurrency: number;
  timeoutMs: number;
  clock: Clock;
  newId: () => string;
  logger: Logger;
}

/** Time past the requests' timeouts in which an attempt is settled before its claim would fall due again. */
const LEASE_MARGIN_MS = 10_000;
/**
 * How far ahead deliveries are claimed: what can be sent in this time, so that there is always something to
 * send.
 */
const CLAIM_AHEAD_MS = 100;
/** Most deliveries claimed ahead, in multiples of those that are sent at the same time. */
const CLAIM_AHEAD_MOST = 32;
/** Longest sleep: bounds how long events wait that another process enqueued. */
const LONGEST_SLEEP_MS = 1_000;
/**
 * What is due and cannot be claimed is held, or being claimed by another process: it is asked for again, but
 * not without a pause.
 */
const SHORTEST_SLEEP_MS = 100;
const PAUSE_AFTER_DATABASE_ERROR_MS = 1_000;
const CHECK_CLOCK_EVERY_MS = 60_000;
/**
 * What is under way when the service stops is given up after this, so that it is settled before the process
 * ends.
 */
const STOP_WITHIN_MS = 8_000;

/**
 * Starts the worker. It claims ahead what it will send within a moment, and settles what has ended in the
 * meantime together with the next claim: a commit costs as much as many deliveries. When there is nothing
 * left to send it settles at once.
 */
export function startDeliveryWorker(options: DeliveryWorkerOptions): DeliveryWorker {
  const { database, feed, concurrency, clock, client, logger } = options;
  const leaseMs = 2 * options.timeoutMs + LEASE_MARGIN_MS;
  const sleeper = createWakeableSleep();
  const pace = createPace(concurrency, concurrency * CLAIM_AHEAD_MOST, CLAIM_AHEAD_MS);
  const claimed: ClaimedDelivery[] = [];
  let settlements: Settlement[] = [];
  /** Whether its commit was lost or only the answer to it is not known. */
  let lostClaim: string | undefined;
  let checkedClockAt = -Infinity;
  let underWay = 0;
  let holds = 0;
  let stopped = false;

  function begin(): void {
    while (!stopped && underWay < concurrency) {
      const delivery = claimed.shift();
      if (delivery === undefined) break;
      // Claimed long ago, for others took long: whoever is next shall have it.
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
    // As long as there is enough to send, what has ended can wait to be settled with more.
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
        logger.warn({ eventId: delivery.eventId }, 'somebody else has claimed this delivery meanwhile');
      }
      if (holds === holdsBefore) {
        claimed.push(...taken.claimed);
      } else {
        // Claimed just before the feed was held, and answered after it.
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
    // Whatever else has ended by now is settled with the rest.
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
        // What is not settled when the service stops is delivered again after its next start.
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

/**
 * An attempt that was given up because the service stops is made again after its next start, not after a
 * pause.
 */
function dueAtOnce(settlement: Settlement, now: number): Settlement {
  return settlement.outcome === 'failed' ? { ...settlement, nextAttemptAt: now } : settlement;
}
