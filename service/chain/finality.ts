import { ChainError, ConfigurationError } from '../base/errors';
import type { Confirmations, FinalityTag, Network } from './networks';
import type { Rpc } from './node';
import { isParameterRefused } from './node-errors';
import { blockIfThere } from './read-chain';

/**
 * The number of the highest final block, given the number of the newest block. Negative if no block is final
 * yet.
 */
export type FinalBlockReading = (headBlock: number) => Promise<number>;

type NamedNetwork = Pick<Network, 'name' | 'confirmations'>;

/**
 * Decides which blocks of a chain are final. A number of confirmations needs no call. A tag needs one. Its
 * block never goes back, although a node that is behind gives an earlier one, and is never above the newest.
 *
 * @returns a reading that throws ConfigurationError FINALITY_UNSUPPORTED if the node does not know the tag;
 *   ChainError FINALITY_MISSING (retryable) if it has no such block; any error of the node.
 */
export function createFinalBlockReading(
  client: Rpc,
  network: NamedNetwork,
  confirmations: Confirmations,
): FinalBlockReading {
  if (typeof confirmations === 'number') return async (headBlock) => headBlock - confirmations;
  let highest = -1;
  let isKnown = false;
  return async (headBlock) => {
    const block = await blockIfThere(client, confirmations).catch((cause: unknown) => {
      throw isParameterRefused(cause) && !isKnown ? unsupported(confirmations, network, cause) : cause;
    });
    if (block === undefined) throw missing(confirmations, network);
    isKnown = true;
    // An absurd answer must not stay.
    highest = Math.max(highest, Math.min(block.number, headBlock));
    return Math.min(highest, headBlock);
  };
}

function unsupported(tag: FinalityTag, network: NamedNetwork, cause: unknown): ConfigurationError {
  const remedy = insteadOf(tag, network);
  const message = `The node of ${network.name} does not know the block tag "${tag}". ${remedy}`;
  return new ConfigurationError('FINALITY_UNSUPPORTED', message, { remedy, cause });
}

function missing(tag: FinalityTag, network: NamedNetwork): ChainError {
  const remedy = `If this lasts, the chain may not have such blocks. ${insteadOf(tag, network)}`;
  const message = `The node of ${network.name} has no "${tag}" block now.`;
  return new ChainError('FINALITY_MISSING', message, { remedy });
}

function insteadOf(tag: FinalityTag, { name, confirmations }: NamedNetwork): string {
  return `Use another node, or ${confirmations} (the default of ${name}) instead of "${tag}".`;
}
