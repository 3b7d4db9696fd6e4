import { isError, keccak256 } from 'ethers';
import { nodeErrorCodeOf, nodeErrorOf } from './refusals';
import type { RpcClient } from './rpc-client';

/**
 * The result of giving a signed transaction to a node:
 *
 * - `taken`: the node has it, now or already before.
 * - `refused`: the node said no.
 * - `open`: the connection failed or the node timed out, so the node may have it.
 */
export type Broadcast = { state: 'taken' } | { state: 'refused' | 'open'; cause: unknown };

/** Error codes of ethers for a refusal by the node. */
const ANSWERS = ['NONCE_EXPIRED', 'REPLACEMENT_UNDERPRICED', 'INSUFFICIENT_FUNDS', 'CALL_EXCEPTION'] as const;

/** Messages of nodes and gateways that do not know the result of a request themselves. */
const TIME_OVER = /timed? ?out|deadline exceeded/i;

/**
 * Sends one signed transaction to a node, once. The same bytes may be sent again after any result, because
 * they cannot be mined twice. A node that mines at once answers with an error when a transaction was mined
 * and reverted; a transaction that the node knows therefore counts as taken.
 */
export async function broadcast(client: RpcClient, raw: string): Promise<Broadcast> {
  try {
    await client.send('eth_sendRawTransaction', [raw]);
    return { state: 'taken' };
  } catch (cause) {
    const isThere = isAlreadyKnown(cause) || (await knows(client, keccak256(raw)).catch(() => false));
    if (isThere) return { state: 'taken' };
    return { state: isAnswer(cause) ? 'refused' : 'open', cause };
  }
}

/** Whether a node has a transaction, pending or mined. Rejects when the node cannot be asked. */
export async function knows(client: RpcClient, hash: string): Promise<boolean> {
  return ((await client.send('eth_getTransactionByHash', [hash])) as unknown) !== null;
}

/** Whether the node itself refused, as opposed to a connection that failed. */
function isAnswer(thrown: unknown): boolean {
  if (ANSWERS.some((code) => isError(thrown, code))) return true;
  const answer = nodeErrorOf(thrown);
  return answer !== undefined && !TIME_OVER.test(answer);
}

function isAlreadyKnown(thrown: unknown): boolean {
  return /already ?known|known transaction|already ?imported|existing tx with same hash/i.test(
    nodeErrorOf(thrown) ?? '',
  );
}

/**
 * The reason why a node refuses a transaction:
 *
 * - `nonce too low`: a transaction with this nonce was mined.
 * - `nonce too high`: a lower nonce is missing, and the node does not queue transactions.
 * - `nonce held`: another transaction with this nonce is pending, and this one does not offer enough more to
 *   replace it.
 * - `fee too low`: it would not be mined at this price.
 * - `no funds`: the wallet cannot pay for it.
 * - `gas`: its gas limit is below the minimum for such a transaction, or above the block's limit.
 * - `busy`: the node has no room or no time for it now.
 * - `other`: the node's message is unknown.
 */
export type Refusal =
  'nonce too low' | 'nonce too high' | 'nonce held' | 'fee too low' | 'no funds' | 'gas' | 'busy' | 'other';

/**
 * Messages of nodes, the more specific first. Nodes have no common error codes; the patterns cover geth,
 * Erigon, Nethermind, Besu and Hardhat.
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

/** Classifies the error that a node answered to a transaction. */
export function classifyRefusal(thrown: unknown): Refusal {
  if (isError(thrown, 'NONCE_EXPIRED')) return 'nonce too low';
  if (isError(thrown, 'REPLACEMENT_UNDERPRICED')) return 'nonce held';
  if (isError(thrown, 'INSUFFICIENT_FUNDS')) return 'no funds';
  const words = nodeErrorOf(thrown) ?? '';
  return WORDS.find(([pattern]) => pattern.test(words))?.[1] ?? 'other';
}

/** JSON-RPC 2.0, section 5.1: an internal error, which does not say what failed. */
const INTERNAL_ERROR = -32603;

/**
 * Whether a refusal means that the node does not have the transaction. An internal error, an unknown message,
 * and a load balancer's answer ("busy", "try again") leave that open.
 */
export function isDefinite(thrown: unknown): boolean {
  const refusal = classifyRefusal(thrown);
  return refusal !== 'other' && refusal !== 'busy' && nodeErrorCodeOf(thrown) !== INTERNAL_ERROR;
}
