import { isError, keccak256 } from 'ethers';
import { nodeErrorOf } from './refusals';
import type { RpcClient } from './rpc-client';

/**
 * What became of a signed transaction that was given to a node:
 *
 * - `taken`: the node has it, from now on or since earlier.
 * - `refused`: the node said no.
 * - `open`: the connection failed, or the node's own time was over, so that it may have it.
 */
export type Broadcast = { state: 'taken' } | { state: 'refused' | 'open'; cause: unknown };

/** ethers' codes for a refusal by the node. */
const ANSWERS = ['NONCE_EXPIRED', 'REPLACEMENT_UNDERPRICED', 'INSUFFICIENT_FUNDS', 'CALL_EXCEPTION'] as const;

/** What nodes, and what stands before them, say when they do not know themselves what came of a request. */
const TIME_OVER = /timed? ?out|deadline exceeded/i;

/**
 * Gives a node one signed transaction, once. The very same bytes may be given again whatever came of it: that
 * cannot send them twice. A node that mines at once answers with an error for a transaction that was mined
 * and reverted: what it knows it has taken.
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

/** Whether a node has a transaction, waiting or mined. Rejects when it cannot be asked. */
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
