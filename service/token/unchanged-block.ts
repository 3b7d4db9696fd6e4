import { setTimeout as sleep } from 'node:timers/promises';
import { isError } from 'ethers';
import { blockAt, headNumberOf, type ChainBlock } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';

/** How often the chain may change while it is read. */
const READINGS = 3;
/** A node that is a block behind the others of its provider has it soon. */
const PAUSE_MS = 1_000;

/** Reads again what failed in a way that may pass by itself. */
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

/**
 * A node that does not have the block yet answers to calls with an error of its own; a contract would give a
 * reason.
 */
function mayPass(error: unknown): boolean {
  if (error instanceof ChainError) return error.retryable;
  return isError(error, 'CALL_EXCEPTION') && error.data === null;
}

/**
 * The newest block.
 *
 * @throws ChainError BLOCK_MISSING (retryable) when another node of the provider does not have it.
 */
export async function headBlockOf(client: RpcClient): Promise<ChainBlock> {
  return existingBlock(client, await headNumberOf(client));
}

/** @throws ChainError BLOCK_MISSING (retryable). */
export async function existingBlock(client: RpcClient, number: number): Promise<ChainBlock> {
  const block = await blockAt(client, number);
  if (block) return block;
  throw new ChainError('BLOCK_MISSING', `The node does not have block ${number}.`, { retryable: true });
}

/**
 * Makes sure that what was read up to this block is of one branch of the chain.
 *
 * @throws ChainError BLOCK_CHANGED, BLOCK_MISSING (both retryable).
 */
export async function expectUnchanged(client: RpcClient, { number, hash }: ChainBlock): Promise<void> {
  const block = await existingBlock(client, number);
  if (block.hash !== hash) throw blockChanged(number);
}

/** The chain was reorganised meanwhile, or the provider's nodes do not agree. */
export function blockChanged(number: number): ChainError {
  const message = `Block ${number} changed while the chain was read.`;
  return new ChainError('BLOCK_CHANGED', message, { retryable: true });
}
