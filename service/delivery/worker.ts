import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../clock';
import type { Database } from '../database/database';
import { messageOf } from '../errors';
import type { Logger } from '../logger';
import { nextDueAt, type ClaimedDelivery } from '../outbox/claim-deliveries';
import type { Settlement } from '../outbox/settle-deliveries';
import { takeTurn } from '../outbox/take-turn';
import { attemptDelivery, type AttemptOptions } from './attempt-delivery';
import { createWakeableSleep } from './wakeable-sleep';

/** Delivers the events of one feed to its webhook. */
export interface DeliveryWorker {
  /** Looks for due deliveries now: something was enqueued. */
  wake(): void;
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
const LEASE_MARGIN_MS = 30_000;
/** Longest sleep: bounds how long events wait that another process enqueued. */
const LONGEST_SLEEP_MS = 1_000;
/** What is due and cannot be claimed is held, or being claimed by another process: it is asked for again, but not without a pause. */
const SHORTEST_SLEEP_MS = 100;
const PAUSE_AFTER_DATABASE_ERROR_MS = 1_000;
/** What is under way when the service stops is given up after this, so that it is settled before the process ends. */
const STOP_WITHIN_MS = 8_000;

/**
 * Starts the worker. It claims as many deliveries again as it has under way, so that there is something to send while the database is
 * asked; and it settles all that ended meanwhile at once.
 */
export function startDeliveryWorker(options: DeliveryWorkerOptions): DeliveryWorker {
  const { database, feed, concurrency, clock, client, logger } = options;
  const leaseMs = 2 * options.timeoutMs + LEASE_MARGIN_MS;
  const sleeper = createWakeableSleep();
  const claimed: ClaimedDelivery[] = [];
  let settlements: Settlement[] = [];
  let underWay = 0;
  let stopped = false;

  function begin(): void {
    while (!stopped && underWay < concurrency) {
      const delivery = claimed.shift();
      if (delivery === undefined) return;
      underWay++;
      void attemptDelivery(options, delivery).then((settlement) => {
        underWay--;
        settlements.push(stopped ? dueAtOnce(settlement, clock.now()) : settlement);
        begin();
        sleeper.wake();
      });
    }
  }

  /** Gives whether there may be more to do at once. */
  async function turn(): Promise<boolean> {
    if (stopped)
      settlements.push(
        ...claimed.splice(0).map((delivery): Settlement => ({ delivery, outcome: 'released' })),
      );
    const now = clock.now();
    const limit = stopped ? 0 : 2 * concurrency - underWay - claimed.length;
    if (limit === 0 && settlements.length === 0) return false;
    const settling = settlements;
    settlements = [];
    try {
      const claim = { feed, lease: options.newId(), limit, now, leaseMs };
      const taken = await takeTurn(database, { settlements: settling, claim });
      for (const { delivery } of taken.lost) {
        logger.warn({ eventId: delivery.eventId }, 'somebody else has claimed this delivery meanwhile');
      }
      claimed.push(...taken.claimed);
      begin();
      return limit > 0 && taken.claimed.length === limit;
    } catch (error) {
      settlements.unshift(...settling);
      throw error;
    }
  }

  async function step(): Promise<void> {
    // Whatever else has ended by now is settled with the rest.
    await setImmediate();
    if ((await turn()) || settlements.length > 0) return;
    const isFull = underWay + claimed.length >= 2 * concurrency;
    const dueAt = stopped || isFull ? undefined : await nextDueAt(database.db, feed);
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
    async stop() {
      stopped = true;
      sleeper.wake();
      const patience = setTimeout(() => client.abort(), STOP_WITHIN_MS);
      await finished;
      clearTimeout(patience);
    },
  };
}

/** An attempt that was given up because the service stops is made again after its next start, not after a pause. */
function dueAtOnce(settlement: Settlement, now: number): Settlement {
  return settlement.outcome === 'failed' ? { ...settlement, nextAttemptAt: now } : settlement;
}
