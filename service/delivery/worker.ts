import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Database } from '../database/database';
import type { DeliveryOptions } from '../base/delivery-options';
import { type Time, createWakeableSleep } from '../base/time';
import { messageOf } from '../base/errors';
import { endPauses, makeDue, nextDueAt, releaseLease, type ClaimedQueue } from '../outbox/claim-queues';
import { takeTurn, type SentTo, type Settlement } from '../outbox/settle-queues';
import { attemptQueue, type AttemptOptions } from './attempt-delivery';
import type { SlotShare } from './delivery-slots';
import { LONGEST_RETRY_AFTER_MS } from './retry-schedule';

/** Delivers the events of one channel. */
export interface DeliveryWorker {
  /** Call it after events were enqueued, or may be sent again. The worker notices retries without it. */
  wake(): void;
  /** Releases each claimed queue after its delivery under way, because the feed is held. */
  hold(): void;
  /** Whether no more deliveries are under way than its share allows, which may have become smaller. */
  isWithinShare(): boolean;
  /** Claims nothing more; resolves when the deliveries under way are settled, and the client is closed. */
  stop(): Promise<void>;
}

/** Options of `startDeliveryWorker`. */
export interface DeliveryWorkerOptions extends AttemptOptions, DeliveryOptions {
  database: Database;
  channel: number;
  sentTo: SentTo;
  slots: SlotShare;
  /** How many deliveries this process may have under way; the others have the rest of the limit. */
  share: () => number;
}

/** Time to settle an attempt after the request timeouts, before its claim falls due again. */
const LEASE_MARGIN_MS = 10_000;
/** Maximum number of events that are claimed from one queue. */
const MOST_PER_QUEUE = 32;
/** Queues are claimed ahead for this time, so that there is always one to send. */
const CLAIM_AHEAD_MS = 100;
/** Maximum number of queues claimed ahead, as a multiple of the concurrency: others could send the rest. */
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

/** The terms of a worker's claims. */
interface ClaimTerms {
  /** The highest number of deliveries under way; 0 while other processes have all of the limit. */
  concurrency: number;
  leaseMs: number;
}

/** What a worker knows between two turns. */
export interface WorkerState {
  /** Claimed queues whose delivery has not begun, in the order of their claims. */
  claimed: ClaimedQueue[];
  /** Deliveries that have begun and not ended. */
  underWay: number;
  /** Ended deliveries that are not recorded yet, and queues to release. */
  ended: Settlement[];
  /** Number of queues that were sent lately in the time that is claimed ahead. */
  pace: number;
  /** Whether a queue that is not claimed may be due. */
  mayBeDue: boolean;
  /** When the next queue falls due (epoch milliseconds). Infinity: none waits. Undefined: it must be read. */
  dueAt: number | undefined;
  /** Whether claimed queues wait for a slot. */
  lacksSlot: boolean;
  /** The lease of a claim that failed: it may have been committed all the same. */
  lostLease: string | undefined;
  isStopped: boolean;
}

/** What a worker does next. */
export interface Turn {
  /** Whether the claimed queues are released. */
  isReleasing: boolean;
  /** Whether something is to be recorded. */
  isSettling: boolean;
  /** Whether a queue may be due, besides those that are settled. */
  isDue: boolean;
  /** Maximum number of queues to claim. */
  claim: number;
  /** Maximum number of deliveries to begin. */
  begin: number;
  /** Time until the next turn, unless something happens before. */
  sleepMs: number;
}

/** Decides the next turn of a worker. `now`: epoch milliseconds. */
export function nextTurn(state: WorkerState, { concurrency, leaseMs }: ClaimTerms, now: number): Turn {
  const { claimed, underWay, ended, dueAt, lacksSlot, isStopped } = state;
  const ahead = Math.min(Math.max(state.pace, concurrency), concurrency * CLAIM_AHEAD_MOST);
  // A delivery begins only in the first half of the lease: it must have ended, and be settled, before the
  // queue falls due again. A queue that waited too long for a slot is claimed anew.
  const hasNoShare = isStopped || concurrency === 0;
  const isReleasing = claimed.length > 0 && (hasNoShare || !mayBegin(claimed[0], leaseMs, now));
  const kept = isReleasing ? 0 : claimed.length;
  const free = Math.max(concurrency - underWay, 0);
  const isFull = hasNoShare || (lacksSlot && kept > 0);
  const isSettling = isReleasing || ended.length > 0 || state.lostLease !== undefined;
  const isIdle = underWay + kept === 0 && !isSettling;
  const longestMs = isIdle ? CHECK_CLOCK_EVERY_MS : LONGEST_SLEEP_MS;
  const dueInMs = Math.max(hasNoShare || kept > 0 ? Infinity : (dueAt ?? Infinity) - now, SHORTEST_SLEEP_MS);
  // While there is enough to send, ended deliveries wait to be settled together with others.
  const isUrgent = isSettling && (isStopped || kept <= ahead / 2);
  return {
    isReleasing,
    isSettling,
    isDue: state.mayBeDue || (dueAt ?? Infinity) <= now,
    claim: isFull ? 0 : Math.max(free + ahead - kept, 0),
    begin: Math.min(free, kept),
    sleepMs: isUrgent ? 0 : Math.min(dueInMs, longestMs),
  };
}

function mayBegin(queue: ClaimedQueue | undefined, leaseMs: number, now: number): boolean {
  return queue !== undefined && queue.leasedUntil - now >= leaseMs / 2;
}

/**
 * Starts the worker. It claims the next deliveries in the same transaction that settles the ended ones,
 * because a commit costs as much as many deliveries.
 */
export function startDeliveryWorker(options: DeliveryWorkerOptions): DeliveryWorker {
  const { database, channel, sentTo, slots, time, client, logger } = options;
  const most = Math.min(options.maxConcurrentDeliveries, slots.most);
  const leaseMs = 2 * options.timeoutMs + LEASE_MARGIN_MS;
  const sleeper = createWakeableSleep(time);
  const paceAfterDelivery = createPace(time);
  const state: WorkerState = {
    claimed: [],
    underWay: 0,
    ended: [],
    pace: 0,
    mayBeDue: true,
    dueAt: undefined,
    lacksSlot: false,
    lostLease: undefined,
    isStopped: false,
  };
  /** Aborts when the feed is held, or the worker is stopped: no further delivery begins. */
  let held = new AbortController();
  let checkedClockAt = -Infinity;
  let lastNow = time.now();

  const next = (): Turn =>
    nextTurn(state, { concurrency: Math.min(most, options.share()), leaseMs }, time.now());
  const isOver = (): boolean => state.isStopped && state.underWay === 0 && !next().isSettling;

  function begin(): void {
    state.lacksSlot = false;
    for (let left = next().begin; left > 0; left--) {
      state.lacksSlot = !slots.take(begin);
      const queue = state.lacksSlot ? undefined : state.claimed.shift();
      if (queue === undefined) return;
      state.underWay++;
      const { signal } = held;
      const mayGoOn = (): boolean =>
        !signal.aborted && state.underWay <= options.share() && mayBegin(queue, leaseMs, time.now());
      void attemptQueue(options, queue, mayGoOn).then(end);
    }
  }

  function end(settlement: Settlement): void {
    state.underWay--;
    slots.release(wasPrompt(settlement));
    state.ended.push(state.isStopped ? dueAtOnce(settlement, time.now()) : settlement);
    state.pace = paceAfterDelivery();
    // The settlement stops the channel.
    if (settlement.failed?.isGone) release();
    begin();
    if (next().sleepMs === 0) sleeper.wake();
  }

  /** Stops each claimed queue after its delivery under way. */
  function release(): void {
    held.abort();
    held = new AbortController();
    state.ended.push(...state.claimed.splice(0).map(released));
  }

  /** Settles and claims in one transaction. */
  async function take({ isReleasing, isDue, claim: limit }: Turn): Promise<void> {
    if (isReleasing) state.ended.push(...state.claimed.splice(0).map(released));
    const { signal } = held;
    const lease = randomUUID();
    const settlements = state.ended.splice(0);
    // `wake` may set it again during the turn.
    state.mayBeDue = false;
    try {
      if (state.lostLease !== undefined)
        await releaseLease(database.db, { channel, lease: state.lostLease, now: time.now() });
      state.lostLease = undefined;
      const claim = { channel, lease, limit, perQueue: MOST_PER_QUEUE, now: time.now(), leaseMs };
      const outcome = await takeTurn(database, { settlements, claim, mayBeDue: isDue, sentTo });
      state.mayBeDue ||= outcome.mayBeDue;
      for (const { queue } of outcome.lost) {
        const eventId = queue.deliveries[0]?.eventId;
        logger.warn({ eventId }, 'another process has claimed this delivery meanwhile');
      }
      if ((state.dueAt ?? 0) <= claim.now || settlements.some(({ failed }) => failed))
        state.dueAt = undefined;
      // The feed may have been held while the claim was under way.
      if (signal.aborted) state.ended.push(...outcome.claimed.map(released));
      else state.claimed.push(...outcome.claimed);
      begin();
    } catch (error) {
      state.ended.unshift(...settlements);
      state.lostLease ??= lease;
      state.mayBeDue = true;
      throw error;
    }
  }

  /** Makes deliveries due that a clock postponed which was set back since. */
  async function checkClock(): Promise<void> {
    const now = time.now();
    const isSetBack = now < lastNow - SET_BACK_MS;
    // A row that a transaction has locked keeps its pause until `makeDue` finds it, within a minute.
    if (isSetBack) await endPauses(database, database.db, { channel, now });
    lastNow = now;
    const isTime = time.elapsed() - checkedClockAt > CHECK_CLOCK_EVERY_MS;
    if (isTime) {
      const longestPauseMs = Math.max(LONGEST_RETRY_AFTER_MS, options.retry.maxDelayMs);
      await makeDue(database.db, { channel, now, leaseMs }, longestPauseMs);
      checkedClockAt = time.elapsed();
    }
    state.mayBeDue ||= isSetBack || isTime;
  }

  async function step(): Promise<void> {
    // Deliveries that end in the same tick are settled together.
    await setImmediate();
    await checkClock();
    const turn = next();
    if (turn.isSettling || (turn.isDue && turn.claim > 0)) await take(turn);
    if (isOver()) return;
    if (state.claimed.length === 0 && !state.isStopped)
      state.dueAt ??= (await nextDueAt(database.db, channel)) ?? Infinity;
    await sleeper.sleep(next().sleepMs);
  }

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
        if (state.isStopped && ++failures > 1) return;
        sleeper.reset();
        await sleeper.sleep(PAUSE_AFTER_DATABASE_ERROR_MS);
      }
    }
  }

  const finished = run();
  return {
    wake(): void {
      state.mayBeDue = true;
      sleeper.wake();
    },
    hold(): void {
      release();
      sleeper.wake();
    },
    isWithinShare: () => state.underWay <= options.share(),
    async stop(): Promise<void> {
      state.isStopped = true;
      held.abort();
      slots.leave();
      sleeper.wake();
      const cancel = time.later(STOP_WITHIN_MS, () => client.abort());
      await finished;
      cancel();
      await client.close();
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
function dueAtOnce(settlement: Settlement, now: number): Settlement {
  const { failed } = settlement;
  if (failed?.nextAttemptAt === undefined) return settlement;
  return { ...settlement, failed: { ...failed, nextAttemptAt: now } };
}

/**
 * The pace of deliveries: how many ended in the last `CLAIM_AHEAD_MS`. For a slow receiver little is claimed
 * ahead, so that few deliveries wait for a lease to end if this process dies.
 *
 * @returns a function to call when a delivery has ended, which returns the pace.
 */
function createPace(time: Time): () => number {
  let windowStart = time.elapsed();
  let ended = 0;
  let pace = 0;
  return () => {
    ended++;
    const elapsed = time.elapsed() - windowStart;
    if (elapsed < CLAIM_AHEAD_MS) return pace;
    pace = Math.round((ended / elapsed) * CLAIM_AHEAD_MS);
    ended = 0;
    windowStart = time.elapsed();
    return pace;
  };
}
