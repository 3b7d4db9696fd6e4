import { setTimeout as sleep } from 'node:timers/promises';
import type { TransactionReceipt } from 'ethers';
import { ChainError, messageOf } from '../errors';
import type { RpcClient } from './rpc-client';

/**
 * Waits until a transaction is mined. A node that cannot be reached meanwhile is asked again: only the receipt, or the end of
 * `waitMs`, decides. (ethers' `wait` leaves a failed poll as an unhandled rejection.)
 *
 * @throws ChainError MINT_REVERTED, or MINT_NOT_CONFIRMED when the time is up.
 */
export async function awaitReceipt(
  client: RpcClient,
  hash: string,
  waitMs: number,
): Promise<TransactionReceipt> {
  const deadline = performance.now() + waitMs;
  let failure: unknown = new Error(`not mined within ${waitMs} ms`);
  for (;;) {
    try {
      const receipt = await client.getTransactionReceipt(hash);
      if (receipt?.status === 1) return receipt;
      if (receipt) throw new ChainError('MINT_REVERTED', `Transaction ${hash} was mined, but reverted.`);
    } catch (cause) {
      if (cause instanceof ChainError) throw cause;
      failure = cause;
    }
    if (performance.now() >= deadline) throw notConfirmed(hash, failure);
    await sleep(Math.min(client.pollingInterval, waitMs));
  }
}

/** Whether the token exists is open, or will be: the log must have the transaction, so that somebody can look. */
export function notConfirmed(hash: string, cause: unknown): ChainError {
  const message = `Transaction ${hash} was sent, but not confirmed: ${messageOf(cause)}`;
  const remedy = 'Look the transaction up before sending again.';
  return new ChainError('MINT_NOT_CONFIRMED', message, { cause, remedy });
}
