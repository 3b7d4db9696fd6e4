import { isError } from 'ethers';
import { nodeErrorCodeOf, nodeErrorOf } from './refusals';

/**
 * Why a node does not take a transaction:
 *
 * - `nonce too low`: a transaction with this nonce was mined.
 * - `nonce too high`: one before it is missing, and the node lets none wait for it.
 * - `nonce held`: another one with this nonce waits, and this one does not offer enough more to take its
 *   place.
 * - `fee too low`: it would not be mined at this price.
 * - `no funds`: the wallet cannot pay for it.
 * - `gas`: its gas limit is too low for any transaction of its kind, or higher than a block's.
 * - `busy`: the node has no room or no time for it now.
 * - `other`: what nobody has thought of.
 */
export type Refusal =
  'nonce too low' | 'nonce too high' | 'nonce held' | 'fee too low' | 'no funds' | 'gas' | 'busy' | 'other';

/**
 * What nodes say, the more special first. There are no common codes: geth's words, Erigon's, Nethermind's,
 * Besu's, Hardhat's.
 */
const WORDS: readonly [RegExp, Refusal][] = [
  [/nonce (is )?too low|old ?nonce|nonce expired/i, 'nonce too low'],
  [/nonce (is )?too high|nonce ?gap|gapped[- ]nonce/i, 'nonce too high'],
  [/replacement|could not replace|another transaction with same nonce|priority is too low/i, 'nonce held'],
  [/insufficient ?funds|enough funds|exceeds allowance|cost exceeds|insufficient balance/i, 'no funds'],
  [
    /underpriced|fee ?too ?low|too low for the next block|less than block base fee|under min gas price/i,
    'fee too low',
  ],
  [/(gas ?price|max ?fee|tip|priority fee).{0,40}(too low|below|at least|minimum)/i, 'fee too low'],
  [/intrinsic gas|requires at least \d+ gas|block gas limit|gas cap|gas ?limit.*(exceed|too)/i, 'gas'],
  [/pool is full|tries to replace pending|too distant|too ?far ?in ?future|spammer/i, 'busy'],
  [/rate limit|too many|limit reached|limit exceeded|try again|timed? ?out|busy/i, 'busy'],
];

/** Reads an error that a node answered a transaction with. */
export function classifyRefusal(thrown: unknown): Refusal {
  if (isError(thrown, 'NONCE_EXPIRED')) return 'nonce too low';
  if (isError(thrown, 'REPLACEMENT_UNDERPRICED')) return 'nonce held';
  if (isError(thrown, 'INSUFFICIENT_FUNDS')) return 'no funds';
  const words = nodeErrorOf(thrown) ?? '';
  return WORDS.find(([pattern]) => pattern.test(words))?.[1] ?? 'other';
}

/** JSON-RPC 2.0, section 5.1: what failed is not said. */
const INTERNAL_ERROR = -32603;

/**
 * Whether a refusal says that the node does not have the transaction. An internal error, words that nobody
 * knows, and what a load balancer says for the nodes behind it ("busy", "try again") leave that open.
 */
export function isDefinite(thrown: unknown): boolean {
  const refusal = classifyRefusal(thrown);
  return refusal !== 'other' && refusal !== 'busy' && nodeErrorCodeOf(thrown) !== INTERNAL_ERROR;
}
