import { existingBlock } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';
import type { KeptBlock } from '../outbox/feeds';

/**
 * Finds the newest kept block that is still on the chain, by bisection: if a block is on the chain, all
 * blocks before it are.
 *
 * @param head number of the chain's newest block; kept blocks above it are no longer on the chain.
 * @throws ChainError CHAIN_REORGANISED if there is none: the reorganisation goes back further than the kept
 *   blocks.
 */
export async function findAncestor(
  client: RpcClient,
  kept: readonly KeptBlock[],
  head: number,
): Promise<KeptBlock> {
  const candidates = kept.filter(({ number }) => number <= head);
  let gone = candidates.length;
  let onChain = -1;
  while (gone - onChain > 1) {
    const middle = Math.floor((onChain + gone) / 2);
    const candidate = candidates[middle];
    if (candidate && (await isOnChain(client, candidate))) onChain = middle;
    else gone = middle;
  }
  const ancestor = candidates[onChain];
  if (ancestor) return ancestor;
  throw tooDeep(kept);
}

/** @throws ChainError BLOCK_MISSING (retryable) if the node does not have the block. */
export async function isOnChain(client: RpcClient, { number, hash }: KeptBlock): Promise<boolean> {
  if (hash === undefined) return true;
  return (await existingBlock(client, number)).hash === hash;
}

function tooDeep(kept: readonly KeptBlock[]): ChainError {
  const [oldest] = kept;
  const message =
    `The chain was reorganised deeper than the finality depth: block ${oldest?.number} ` +
    'is not the one that was read, and earlier blocks are no longer known. ' +
    'Nothing is delivered until an operator acts.';
  const remedy =
    'Compare what was delivered with the chain; ' +
    'then start with a new DATA_DIR (or database) and a larger FINALITY_DEPTH. ' +
    'Keep the old one: it has the issued documents and the subscriptions.';
  return new ChainError('CHAIN_REORGANISED', message, { remedy });
}
