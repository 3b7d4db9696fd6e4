import { isError, keccak256 } from 'ethers';
import { nodeErrorOf } from './refusals';
import type { RpcClient } from './rpc-client';

/**
 * What became of a signed transaction that was given to a node:
 *
 * - `taken`: the node has it, from now on or since earlier.
 * - `refused`: the node said no.
 * - `open`: the connection failed, so that the node may have it.
 */
export type Broadcast = { state: 'taken' } | { state: 'refused' | 'open'; cause: unknown };

/** ethers' codes for a refusal by the node. */
const ANSWERS = ['NONCE_EXPIRED', 'REPLACEMENT_UNDERPRICED', 'INSUFFICIENT_FUNDS', 'CALL_EXCEPTION'] as const;

/**
 * Gives a node one signed transaction, once. The very same bytes may be given again whatever came of it: that cannot send them twice. A node that
 * mines at once answers with an error for a transaction that was mined and reverted: what it knows it has taken.
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
  return ANSWERS.some((code) => isError(thrown, code)) || nodeErrorOf(thrown) !== undefined;
}

function isAlreadyKnown(thrown: unknown): boolean {
  return /already ?known|known transaction|already imported/i.test(nodeErrorOf(thrown) ?? '');
}
