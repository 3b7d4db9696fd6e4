import type { Refusal } from '../chain/classify-refusal';

/** What a decision about a transaction that a node refused is made from. */
export interface RefusedFlight {
  refusal: Refusal;
  nonce: number;
  /** How often it was not taken in a row, this time included. */
  attempts: number;
  /** How often its mint's gas was estimated again. */
  estimates: number;
  /** The node's count of the wallet's transactions, with those that wait. */
  pending: number;
  /** Nonces below are used, as far as any node ever said. */
  floor: number;
  /** Whether nodes have said less than that for too long to be behind. */
  isChainShorter: boolean;
  /** Where the lane holds the nonce `pending`. */
  pendingHolder: 'nobody' | 'being sent' | 'in flight';
}

/**
 * What is to be done about a refused transaction:
 *
 * - `send again`: the same bytes, once those before them were sent; `later`: after a pause, when node and lane disagree, which passes.
 * - `sign anew`: its nonce is somebody else's.
 * - `send those before again`: the node has lost what it had taken.
 * - `fill hole`: nobody has the nonce that the node waits for; the lane gives it to another mint.
 * - `realign`: the chain is another: all nonces are given anew.
 * - `offer more`, `estimate anew`: sign with the same nonce, other fees; with another gas limit.
 * - `wait for funds`, `fail`: as named.
 */
export type Healing =
  | 'send again'
  | 'send again later'
  | 'sign anew'
  | 'send those before again'
  | 'fill hole'
  | 'realign'
  | 'offer more'
  | 'estimate anew'
  | 'wait for funds'
  | 'fail';

/** How often what may pass is tried before it is taken for what it says. */
const MOST_ATTEMPTS = 5;
const MOST_ESTIMATES = 2;

/** Decides, from what the node said and what it counts. */
export function decideRefusal(flight: RefusedFlight): Healing {
  const { refusal, attempts } = flight;
  const isTried = attempts >= MOST_ATTEMPTS;
  switch (refusal) {
    case 'nonce too low':
      return flight.pending > flight.nonce || isTried ? 'sign anew' : 'send again later';
    case 'nonce held':
      return flight.pending > flight.nonce ? 'sign anew' : 'send again later';
    case 'nonce too high':
      return decideGap(flight);
    case 'fee too low':
      return isTried ? 'fail' : 'offer more';
    case 'gas':
      return flight.estimates < MOST_ESTIMATES ? 'estimate anew' : 'fail';
    case 'no funds':
      return 'wait for funds';
    case 'busy':
      return 'send again later';
    case 'other':
      return isTried ? 'fail' : 'send again later';
  }
}

/** The node waits for the nonce that it counts up to. */
function decideGap({
  nonce,
  pending,
  floor,
  isChainShorter,
  pendingHolder,
  attempts,
}: RefusedFlight): Healing {
  if (pending >= nonce || pendingHolder === 'being sent')
    return attempts > 1 ? 'send again later' : 'send again';
  if (pendingHolder === 'in flight') return 'send those before again';
  if (pending >= floor) return 'fill hole';
  return isChainShorter ? 'realign' : 'send again later';
}
