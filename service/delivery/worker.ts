import { setImmediate } from 'node:timers/promises';
import type { Database } from '../database/database';
import { type Time, createWakeableSleep } from '../base/time';
import { messageOf } from '../base/errors';
import { endPauses, makeDue, nextDueAt, releaseLease, type ClaimedQueue } from '../outbox/claim-queues';
import { takeTurn, type SentTo, type Settlement } from '../outbox/settle-queues';
import { attemptQueue, LONGEST_RETRY_AFTER_MS, type AttemptOptions } from './attempt-delivery';
import type { SlotShare } from './delivery-slots';

/** Delivers the events of one channel. */
export interface DeliveryWorker {
  /** Call it after events were enqueued, or may be sent again. The worker notices retries without it. */
  wake(): void;
  /** Releases each claimed queue after its delivery under way, because the feed is held. */
  hold(): void;
  /** Claims nothing more; resolves when the deliveries under way are settled. */
  stop(): Promise<void>;
}

/** Options of `startDeliveryWorker`. */
export interface DeliveryWorkerOptions extends AttemptOptions {
  database: Database;
  channel: number;
  sentTo: SentTo;
  /** Maximum number of queues that are sent from at once. */
  concurrency: number;
  timeoutMs: number;
  slots: SlotShare;
  newId: () => string;
}

/** Time to settle an attempt after the request timeouts, before its claim falls due again. */
const LEASE_MARGIN_MS = 10_000;
/** Maximum number of events that are claimed from one queue. */
const MOST_PER_QUEUE = 32;
/** Queues are claimed ahead for this time, so that there is always one to send. */
const CLAIM_AHEAD_MS = 100;
/** Maximum number of queues claimed ahead, as a multiple of the concurrency. */
const CLAIM_AHEAD_MOST = 32;
/** Longest sleep while deliveries are under way: ended ones are settled long before their lease ends. */
const LONGEST_SLEEP_MS = 1_000;
/**
 * Shortest sleep, for a due delivery that cannot be claimed: it is held, or another process is claiming it.
 */
const SHORTEST_SLEEP_MS = 100;
/** A sink that answers within this time is prompt. */
const PROMPT_MS = 2_000;
const PAUSE_AFTER_DATABASE_ERROR_MS = 1_000;
const CHECK_CLOCK_EVERY_MS = 60_000;
/**
 * A clock that is set back by less is corrected. While the worker sleeps, it does not see a clock that is set
 * back by less than it sleeps. Both delay a retry by at most as much: a minute.
 */
const SET_BACK_MS = 1_000;
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
  const { database, channel, sentTo, slots, time, client, logger } = options;
  const concurrency = Math.min(options.concurrency, slots.most);
  const leaseMs = 2 * options.timeoutMs + LEASE_MARGIN_MS;
  const sleeper = createWakeableSleep(time);
  const pace = createPace(time, concurrency, concurrency * CLAIM_AHEAD_MOST, CLAIM_AHEAD_MS);
  const claimed: ClaimedQueue[] = [];
  let settlements: Settlement[] = [];
  /** The lease of a claim that failed: it may have been committed all the same. */
  let lostClaim: string | undefined;
  let checkedClockAt = -Infinity;
  let lastNow = time.now();
  /** Whether a queue that is not claimed may be due. */
  let mayBeDue = true;
  /** Whether a queue may back off: `dueAt` must then be read. */
  let mayBackOff = true;
  /** Time at which the next queue falls due. */
  let dueAt: number | undefined;
  let underWay = 0;
  /** Whether claimed queues wait for a slot. */
  let lacksSlot = false;
  let holds = 0;
  let stopped = false;

  // A delivery begins only in the first half of the lease: it must have ended, and be settled, before the
  // queue falls due again.
  const mayBegin = ({ leasedUntil }: ClaimedQueue): boolean => leasedUntil - time.now() >= leaseMs / 2;

  function begin(): void {
    lacksSlot = false;
    while (!stopped && underWay < concurrency && claimed.length > 0) {
      lacksSlot = !slots.take(begin);
      const queue = lacksSlot ? undefined : claimed.shift();
      if (queue === undefined) break;
      underWay++;
      const holdsBefore = holds;
      const mayGoOn = (): boolean => !stopped && holds === holdsBefore && mayBegin(queue);
      void attemptQueue(options, queue, mayGoOn).then(ended);
    }
  }

  function ended(settlement: Settlement): void {
    underWay--;
    slots.release(wasPrompt(settlement));
    settlements.push(stopped ? dueAtOnce(settlement, time.now()) : settlement);
    if (settlement.failed) mayBackOff = true;
    pace.ended();
    // The settlement stops the channel.
    if (settlement.failed?.isGone) release();
    begin();
    // While there is enough to send, ended deliveries wait to be settled together with others.
    if (stopped || claimed.length <= pace.ahead() / 2) sleeper.wake();
  }

  /** Stops each claimed queue after its delivery under way. */
  function release(): void {
    holds++;
    settlements.push(...claimed.splice(0).map(released));
  }

  async function turn(): Promise<void> {
    // A queue that waited too long for a slot is claimed anew.
    if (stopped || !claimed.every(mayBegin)) settlements.push(...claimed.splice(0).map(released));
    const isFull = stopped || (lacksSlot && claimed.length > 0);
    const most = Math.max(concurrency - underWay, 0) + pace.ahead() - claimed.length;
    const limit = isFull ? 0 : Math.max(most, 0);
    const mayClaim = mayBeDue || (dueAt ?? Infinity) <= time.now();
    if ((limit === 0 || !mayClaim) && settlements.length === 0 && lostClaim === undefined) return;
    const holdsBefore = holds;
    const lease = options.newId();
    const settling = settlements;
    settlements = [];
    // `wake` may set it again during the turn.
    mayBeDue = false;
    try {
      if (lostClaim !== undefined)
        await releaseLease(database.db, { channel, lease: lostClaim, now: time.now() });
      lostClaim = undefined;
      const claim = { channel, lease, limit, perQueue: MOST_PER_QUEUE, now: time.now(), leaseMs };
      const outcome = await takeTurn(database, { settlements: settling, claim, mayBeDue: mayClaim, sentTo });
      mayBeDue ||= outcome.mayBeDue;
      for (const { queue } of outcome.lost) {
        const eventId = queue.deliveries[0]?.eventId;
        logger.warn({ eventId }, 'another process has claimed this delivery meanwhile');
      }
      if (holds === holdsBefore) {
        claimed.push(...outcome.claimed);
      } else {
        // The feed was held while the claim was under way.
        settlements.push(...outcome.claimed.map(released));
        sleeper.wake();
      }
      begin();
    } catch (error) {
      settlements.unshift(...settling);
      lostClaim ??= lease;
      mayBeDue = true;
      throw error;
    }
  }

  async function step(): Promise<void> {
    // Deliveries that end in the same tick are settled together.
    await setImmediate();
    if (time.elapsed() - checkedClockAt > CHECK_CLOCK_EVERY_MS) {
      const longestPauseMs = Math.max(LONGEST_RETRY_AFTER_MS, options.schedule.maxDelayMs);
      await makeDue(database.db, { channel, now: time.now(), leaseMs }, longestPauseMs);
      checkedClockAt = time.elapsed();
      mayBeDue = true;
    }
    await turn();
    if (isOver()) return;
    const now = time.now();
    const isSetBack = now < lastNow - SET_BACK_MS;
    // A row that a transaction has locked keeps its pause until `makeDue` finds it, within a minute.
    if (isSetBack) await endPauses(database, database.db, { channel, now });
    mayBeDue ||= isSetBack;
    lastNow = now;
    if (isSetBack) return;
    if (mayBackOff && !stopped && claimed.length === 0) {
      dueAt = await nextDueAt(database.db, channel);
      mayBackOff = dueAt !== undefined;
    }
    const nextAt = claimed.length > 0 ? Infinity : (dueAt ?? Infinity);
    // The clock may be set back here too: the next step notices.
    const inMs = Math.max(nextAt - Math.max(now, time.now()), SHORTEST_SLEEP_MS);
    await sleeper.sleep(Math.min(inMs, isIdle() ? CHECK_CLOCK_EVERY_MS : LONGEST_SLEEP_MS));
  }

  const isIdle = (): boolean => underWay === 0 && settlements.length === 0 && claimed.length === 0;
  const isOver = (): boolean => stopped && isIdle() && lostClaim === undefined;

  async function run(): Promise<void> {
    let failures = 0;
    while (!isOver()) {
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
    wake(): void {
      mayBeDue = true;
      sleeper.wake();
    },
    hold(): void {
      release();
      sleeper.wake();
    },
    async stop(): Promise<void> {
      stopped = true;
      slots.leave();
      sleeper.wake();
      const cancel = time.later(STOP_WITHIN_MS, () => client.abort());
      await finished;
      cancel();
    },
  };
}

function released(queue: ClaimedQueue): Settlement {
  return { queue, delivered: [] };
}

/** Undefined if nothing was sent. */
function wasPrompt({ delivered, failed }: Settlement): boolean | undefined {
  const attempts = [...delivered, ...(failed ? [failed] : [])].map(({ attempt }) => attempt);
  if (attempts.length === 0) return undefined;
  return attempts.every(({ status, milliseconds }) => status !== undefined && milliseconds <= PROMPT_MS);
}

/** An attempt that the stop aborted is retried right after the next start. */
function dueAtOnce({ failed, ...settlement }: Settlement, now: number): Settlement {
  if (failed === undefined) return settlement;
  return {
    ...settlement,
    failed: failed.nextAttemptAt === undefined ? failed : { ...failed, nextAttemptAt: now },
  };
}

/**
 * The rate of deliveries. It sets the number to claim ahead to that of the deliveries that ended in the last
 * `windowMs`, between `least` and `most`. For a slow receiver little is claimed ahead, so that few deliveries
 * wait for a lease to end if this process dies.
 */
function createPace(time: Time, least: number, most: number, windowMs: number) {
  let windowStart = time.elapsed();
  let ended = 0;
  let ahead = least;
  return {
    /** To be called when a delivery has ended. */
    ended(): void {
      ended++;
      const elapsed = time.elapsed() - windowStart;
      if (elapsed < windowMs) return;
      ahead = Math.min(most, Math.max(least, Math.round((ended / elapsed) * windowMs)));
      ended = 0;
      windowStart = time.elapsed();
    },
    ahead: () => ahead,
  };
}
