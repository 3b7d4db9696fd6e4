import { setTimeout as sleep } from 'node:timers/promises';
import { isError } from 'ethers';
import { existingBlock, headNumberOf, type ChainBlock } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';

/** Maximum number of readings while the chain changes. */
const READINGS = 3;
/** Pause before the next reading. A node that is a block behind has caught up by then. */
const PAUSE_MS = 1_000;

/** Repeats a reading that failed with an error that may pass by itself. */
export async function readAgainWhileItMayPass<T>(read: () => Promise<T>): Promise<T> {
  for (let reading = 1; ; reading++) {
    try {
      return await read();
    } catch (error) {
      if (!mayPass(error) || reading === READINGS) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

/** A node that does not have the block yet fails without revert data; a contract gives a reason. */
function mayPass(error: unknown): boolean {
  if (error instanceof ChainError) return error.retryable;
  return isError(error, 'CALL_EXCEPTION') && error.data === null;
}

/**
 * Reads the newest block.
 *
 * @throws ChainError BLOCK_MISSING (retryable) if another node of the provider does not have it.
 */
export async function headBlockOf(client: RpcClient): Promise<ChainBlock> {
  return existingBlock(client, await headNumberOf(client));
}

/**
 * Checks that everything read up to this block is of one branch of the chain.
 *
 * @throws ChainError BLOCK_CHANGED, BLOCK_MISSING (both retryable).
 */
export async function expectUnchanged(client: RpcClient, { number, hash }: ChainBlock): Promise<void> {
  const block = await existingBlock(client, number);
  if (block.hash !== hash) throw blockChanged(number);
}

/** The error for a reorganisation during a reading, or for nodes of one provider that disagree. */
export function blockChanged(number: number): ChainError {
  const message = `Block ${number} changed while the chain was read.`;
  return new ChainError('BLOCK_CHANGED', message, { retryable: true });
}
