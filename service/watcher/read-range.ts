import { blocksAt, type ChainBlock, type ChainLog } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';
import { ESCROW_TOPICS, REGISTRY_AND_FACTORY_TOPICS } from '../registry/abi';
import { completeMints, genuineOf, type DecodedLog } from '../registry/decode-log';
import type { RegistryContracts } from '../registry/registry-contracts';
import type { RegistryEvent } from '../registry/registry-event';
import { readPositions, type PositionOf } from './log-positions';
import { readTwice } from './read-twice';

/** The contents of a range of blocks. */
export interface RangeRead {
  events: RegistryEvent[];
  /** The blocks with events, the first and the last one. Ascending. */
  blocks: ChainBlock[];
}

/**
 * Reads all genuine events of the blocks `first` to `last`, in chain order. It makes two `eth_getLogs`
 * queries for any number of tokens: title escrow events carry their registry unindexed, so they are selected
 * by topic and checked here. It also makes one call per block with events, for the block's time, and one per
 * transaction with events, for the positions of its logs. A single block is requested by hash: a node that
 * does not have the block fails then, instead of answering with no logs.
 */
export async function readRange(
  client: RpcClient,
  contracts: RegistryContracts,
  first: ChainBlock,
  last: ChainBlock,
): Promise<RangeRead> {
  const blocks =
    first.number === last.number
      ? { blockHash: last.hash }
      : { fromBlock: first.number, toBlock: last.number };
  const [own, escrows] = await Promise.all([
    readTwice(client, {
      ...blocks,
      address: [contracts.registry, contracts.titleEscrowFactory],
      topics: REGISTRY_AND_FACTORY_TOPICS,
    }),
    readTwice(client, { ...blocks, topics: ESCROW_TOPICS }),
  ]);
  const genuine = genuineOf([...own, ...escrows], contracts);
  const [read, positionOf] = await Promise.all([
    blocksOf(client, genuine, first, last),
    readPositions(
      client,
      genuine.map(({ log }) => log),
    ),
  ]);
  const byNumber = new Map(read.map((block) => [block.number, block]));
  return { events: eventsOf(genuine, byNumber, positionOf), blocks: read };
}

/** Combines decoded logs with their blocks and their positions in their transactions. */
export function eventsOf(
  decoded: readonly DecodedLog[],
  blocks: ReadonlyMap<number, ChainBlock>,
  positionOf: PositionOf,
): RegistryEvent[] {
  return completeMints(decoded).map(({ type, tokenId, payload, log }) => ({
    type,
    tokenId,
    payload,
    blockNumber: log.blockNumber,
    blockHash: log.blockHash,
    blockTimestamp: timestampOf(blocks, log),
    transactionHash: log.transactionHash,
    logIndex: positionOf(log),
    blockLogIndex: log.index,
  }));
}

/**
 * Reads the blocks of the logs, and the first and the last block of the range. These two must not have
 * changed since the logs were read. Ascending.
 */
async function blocksOf(
  client: RpcClient,
  decoded: readonly DecodedLog[],
  first: ChainBlock,
  last: ChainBlock,
): Promise<ChainBlock[]> {
  // The logs of a single block were requested by its hash. A range is requested by numbers and may have
  // changed.
  if (first.number === last.number) return [last];
  const numbers = new Set([first.number, last.number, ...decoded.map(({ log }) => log.blockNumber)]);
  const ascending = [...numbers].sort((left, right) => left - right);
  const blocks = (await blocksAt(client, ascending)).flatMap((block) => block ?? []);
  if (blocks[0]?.hash !== first.hash) throw changed(first.number);
  if (blocks.at(-1)?.hash !== last.hash) throw changed(last.number);
  return blocks;
}

/**
 * The logs and the block were read in separate calls. If they are of different branches, the range is read
 * again.
 */
function timestampOf(blocks: ReadonlyMap<number, ChainBlock>, { blockNumber, blockHash }: ChainLog): number {
  const block = blocks.get(blockNumber);
  if (block?.hash === blockHash) return block.timestamp;
  throw changed(blockNumber);
}

function changed(number: number): ChainError {
  const message = `Block ${number} changed while it was being read.`;
  return new ChainError('BLOCK_CHANGED', message, { retryable: true });
}
