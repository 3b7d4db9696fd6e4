/** How many transactions may be under way to the node together, before it has acknowledged any of them. */
export interface BroadcastWidth {
  now(): number;
  /** A node took a transaction. */
  taken(): void;
  /** The node had not mined what it had taken when it was asked afterwards: it lets transactions wait. */
  waits(): void;
  /** A node refused a transaction because the one before it had not come yet. */
  refused(): void;
}

/** More would gain nothing: a node works on a few requests at a time. */
const WIDEST = 16;
/** After which a node that refused is tried again. */
const NARROW_FOR_MS = 60_000;

/**
 * One after the other at first. A node that does not mine at once lets transactions wait for those before them, in whatever order they come: then
 * one more may be under way with each that it takes. One that mines at once refuses what comes too early.
 *
 * @param isKnownToWait whether the chain's nodes are known to let transactions wait.
 */
export function createBroadcastWidth(isKnownToWait: boolean): BroadcastWidth {
  let width = 1;
  let mayGrow = isKnownToWait;
  let narrowUntil = -Infinity;
  return {
    now: () => width,
    taken() {
      if (mayGrow && performance.now() >= narrowUntil) width = Math.min(width + 1, WIDEST);
    },
    waits() {
      mayGrow = true;
    },
    refused() {
      width = 1;
      mayGrow = isKnownToWait;
      narrowUntil = performance.now() + NARROW_FOR_MS;
    },
  };
}
