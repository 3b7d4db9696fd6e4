import { isError, keccak256 } from 'ethers';
import { nodeErrorOf } from './node-errors';
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
