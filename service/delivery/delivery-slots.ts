import type { Logger } from '../base/logger';
import type { Time } from '../base/time';

/**
 * How the sink of a channel answers. `new`: it was not asked yet. `slow`: its last answer was not prompt, or
 * did not come.
 */
type Pace = 'new' | 'quick' | 'slow';

/** The part of the slots that one channel holds. */
export interface SlotShare {
  /** It never holds more. */
  readonly most: number;
  /** Takes a slot for a delivery. After false, `onFree` is called when the channel may take one. */
  take(this: void, onFree: () => void): boolean;
  /** Gives a slot back. `wasPrompt`: undefined if nothing was sent. */
  release(this: void, wasPrompt: boolean | undefined): void;
  /** Stops waiting for a slot. */
  leave(this: void): void;
}

/** The connections that no delivery uses now, the longest idle first. The value closes the connection. */
export type IdleConnections = Map<object, () => void>;

/** The deliveries that the process may have under way at once. */
export interface DeliverySlots {
  readonly idle: IdleConnections;
  /** `isFailing`: no delivery of the channel has succeeded lately. */
  newShare(this: void, isFailing: boolean): SlotShare;
}

const WARN_EVERY_MS = 60_000;

/**
 * Divides the connections of deliveries between the channels. A slot cannot be taken back from a delivery, so
 * slots are kept free for others: a channel gets a further one only while it holds fewer than are left.
 * Quick channels may use all slots. Those that are slow may use half of them together, and new ones a
 * quarter, one each. However many sinks do not answer, a quarter is left to the quick ones.
 *
 * A connection that is kept alive has a descriptor too: it is closed when a delivery needs its place.
 *
 * @param most the number of slots, and of open connections.
 */
export function createDeliverySlots(options: { most: number; time: Time; logger: Logger }): DeliverySlots {
  const { most, time, logger } = options;
  const held = { new: 0, quick: 0, slow: 0 };
  const idle: IdleConnections = new Map();
  /** In the order in which they began to wait. */
  const waiting = new Map<object, { mayTake: () => boolean; onFree: () => void }>();
  let warnedAt = -Infinity;

  const free = (): number => most - held.new - held.quick - held.slow;

  /** How many slots are left to a channel of this pace. */
  function leftTo(pace: Pace): number {
    if (pace === 'quick') return free();
    if (pace === 'slow') return Math.min(free(), Math.floor(most / 2) - held.slow);
    return Math.min(free(), Math.floor(most / 4) - held.new, 1);
  }

  function serveWaiting(): void {
    for (const [share, { mayTake, onFree }] of waiting) {
      if (free() === 0) return;
      if (!mayTake()) continue;
      waiting.delete(share);
      onFree();
    }
  }

  function closeLongestIdle(): void {
    for (const close of idle.values()) {
      if (idle.size <= free()) return;
      close();
    }
  }

  function warnOfWaiting(): void {
    if (time.elapsed() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = time.elapsed();
    const remedy = 'Let the process open more files (`ulimit -n`), or pause subscriptions that are failing.';
    logger.warn({ slots: most, remedy }, 'deliveries wait for a connection: others hold too many');
  }

  return {
    idle,
    newShare(isFailing) {
      let pace: Pace = isFailing ? 'slow' : 'new';
      let own = 0;
      const mayTake = (): boolean => own < leftTo(pace);
      const share: SlotShare = {
        most: Math.ceil(most / 2),
        take(onFree) {
          if (!mayTake()) {
            if (own === 0) warnOfWaiting();
            waiting.set(share, { mayTake, onFree });
            return false;
          }
          own++;
          held[pace]++;
          closeLongestIdle();
          return true;
        },
        release(wasPrompt) {
          const before = pace;
          if (wasPrompt !== undefined) pace = wasPrompt ? 'quick' : 'slow';
          held[before] -= own;
          own--;
          held[pace] += own;
          serveWaiting();
        },
        leave() {
          waiting.delete(share);
        },
      };
      return share;
    },
  };
}
