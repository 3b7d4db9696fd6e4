import type { Refusal } from '../chain/classify-refusal';

/** What a decision about a rejected transaction is made from. */
export interface Rejection {
  refusal: Refusal;
  nonce: number;
  /** Whether some node may have it. */
  mayBeTaken: boolean;
  /** How often it was not acknowledged in a row, this time included. */
  attempts: number;
  /** How often its mint's gas was estimated again. */
  estimates: number;
  /** The node's count of the wallet's transactions, with those that wait. */
  pending: number;
  /** Nonces below are used, as far as any node ever said. */
  floor: number;
  /** Whether nodes have counted less than that for too long to be behind. */
  isChainShorter: boolean;
  /** Where the queue holds the nonce `pending`. */
  pendingHolder: 'nobody' | 'being sent' | 'pending';
}

/**
 * What is to be done about a rejected transaction:
 *
 * - `send again`: the same bytes, once those before them were sent; `later`: after a pause, when node and
 *   queue disagree, which passes.
 * - `sign anew`: its nonce is another's, and no node has it. `watch`: its nonce may be its own.
 * - `send those before again`: the node has lost what it had taken.
 * - `fill hole`: nobody has the nonce that the node waits for; the queue gives it to another mint.
 * - `reset nonces`: the chain is another, or a shorter one.
 * - `offer more`, `estimate again`: sign with the same nonce and other fees; with another gas limit.
 * - `wait for funds`, `give up`: as named.
 */
export type Remedy =
  | 'send again'
  | 'send again later'
  | 'sign anew'
  | 'watch'
  | 'send those before again'
  | 'fill hole'
  | 'reset nonces'
  | 'offer more'
  | 'estimate again'
  | 'wait for funds'
  | 'give up';

/** How often what may pass is tried before it is taken for what it says. */
const MOST_ATTEMPTS = 5;
const MOST_ESTIMATES = 2;

/** Decides, from what the node said and what it counts. */
export function decideRejection(rejection: Rejection): Remedy {
  const { refusal, attempts, nonce, pending, mayBeTaken } = rejection;
  const isTried = attempts >= MOST_ATTEMPTS;
  switch (refusal) {
    case 'nonce too low':
    case 'nonce held':
      // Another transaction has this nonce, and both wait for a lower one. Only this queue will use that.
      if (refusal === 'nonce held' && pending < nonce && rejection.pendingHolder === 'nobody')
        return decideGap(rejection);
      if (pending <= nonce && !isTried) return 'send again later';
      return mayBeTaken ? 'watch' : 'sign anew';
    case 'nonce too high':
      return decideGap(rejection);
    case 'fee too low':
      return isTried ? 'give up' : 'offer more';
    case 'gas':
      return rejection.estimates < MOST_ESTIMATES ? 'estimate again' : 'give up';
    case 'no funds':
      return 'wait for funds';
    case 'busy':
      return 'send again later';
    case 'other':
      return isTried ? 'give up' : 'send again later';
  }
}

/** The node waits for the nonce that it counts up to. */
function decideGap({ nonce, pending, floor, isChainShorter, pendingHolder, attempts }: Rejection): Remedy {
  if (pending >= nonce || pendingHolder === 'being sent')
    return attempts > 1 ? 'send again later' : 'send again';
  if (pendingHolder === 'pending') return 'send those before again';
  if (pending >= floor) return 'fill hole';
  return isChainShorter ? 'reset nonces' : 'send again later';
}
