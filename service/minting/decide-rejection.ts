import type { Refusal } from '../chain/node-errors';

/** A refusal, with what the node and the queue have at its time. */
export interface SeenRefusal {
  refusal: Refusal;
  /** Consecutive sends that no node acknowledged, this one included. */
  attempts: number;
  /** The node's transaction count for the wallet, including transactions in its pool. */
  pending: number;
  /** Nonces below this one are used; the highest value that any node has reported. */
  floor: number;
  /** Whether nodes have counted less than `floor` for so long that they cannot just be behind. */
  isChainShorter: boolean;
  /** Holder of the nonce `pending` in the queue. */
  pendingHolder: 'nobody' | 'being sent' | 'pending';
}

/** The facts that decide how a rejected transaction is handled. */
export interface Rejection extends SeenRefusal {
  nonce: number;
  /** Whether some node may have the transaction. */
  mayBeTaken: boolean;
  /** How often it was refused like this without another refusal in between, this time included. */
  alike: number;
  /** How often the mint's gas was estimated again. */
  estimates: number;
}

/**
 * The action for a rejected transaction:
 *
 * - `send again`: send the same bytes once the lower nonces were sent. `send again later`: the same after a
 *   pause, because node and queue disagree, which passes.
 * - `sign anew`: another transaction used the nonce, and no node has this one. `watch`: this transaction may
 *   be the one that used it.
 * - `send those before again`: the node lost transactions that it had accepted.
 * - `fill hole`: the node waits for a nonce that no transaction has; the queue gives it to another mint.
 * - `reset nonces`: the chain is another one, or shorter than before.
 * - `offer more`, `estimate again`: sign with the same nonce and higher fees, or with a new gas limit.
 * - `wait for funds`: the wallet must be funded first. `give up`: the node's refusal stands.
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

/** Number of attempts before a refusal that may pass is taken at face value. */
const MOST_ATTEMPTS = 5;
/** How often a mint's gas may be estimated again. */
export const MOST_ESTIMATES = 2;

/** Chooses the action from the node's refusal and its transaction count. */
export function decideRejection(rejection: Rejection): Remedy {
  const { refusal, attempts, alike, nonce, pending, mayBeTaken } = rejection;
  switch (refusal) {
    case 'nonce too low':
    case 'nonce held':
      // Another transaction waits with this nonce. It needs a lower nonce, which only this queue will use.
      if (refusal === 'nonce held' && pending < nonce && rejection.pendingHolder === 'nobody')
        return decideGap(rejection);
      if (pending <= nonce && attempts < MOST_ATTEMPTS) return 'send again later';
      return mayBeTaken ? 'watch' : 'sign anew';
    case 'nonce too high':
      return decideGap(rejection);
    case 'fee too low':
      return alike >= MOST_ATTEMPTS ? 'give up' : 'offer more';
    case 'gas':
      return rejection.estimates < MOST_ESTIMATES ? 'estimate again' : 'give up';
    case 'no funds':
      return 'wait for funds';
    case 'busy':
      return 'send again later';
    case 'other':
      return alike >= MOST_ATTEMPTS ? 'give up' : 'send again later';
  }
}

/** Chooses the action when the node waits for a lower nonce, the one equal to its count. */
function decideGap({ nonce, pending, floor, isChainShorter, pendingHolder, attempts }: Rejection): Remedy {
  if (pending >= nonce || pendingHolder === 'being sent')
    return attempts > 1 ? 'send again later' : 'send again';
  if (pendingHolder === 'pending') return 'send those before again';
  if (pending >= floor) return 'fill hole';
  return isChainShorter ? 'reset nonces' : 'send again later';
}
