import pMap from 'p-map';
import { blockAt, type ChainBlock, type ChainLog } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';
import { ESCROW_TOPICS, REGISTRY_AND_FACTORY_TOPICS } from '../registry/abi';
import { completeMints, genuineOf, type DecodedLog } from '../registry/decode-log';
import type { RegistryContracts } from '../registry/registry-contracts';
import type { RegistryEvent } from '../registry/registry-event';
import { readPositions, type PositionOf } from './log-positions';
import { readTwice } from './read-twice';

/** Blocks asked for at the same time. */
const CONCURRENT_BLOCKS = 8;

/** What a range of blocks holds. */
export interface RangeRead {
  events: RegistryEvent[];
  /** The blocks with events, the first and the last one. Ascending. */
  blocks: ChainBlock[];
}

/**
 * All genuine events of the blocks `first` to `last`, in chain order. Two `eth_getLogs` queries however many
 * tokens there are (escrow events carry their registry unindexed, so they are selected by topic and checked
 * here), one call for each block that has events, for its time, and one for each transaction that has some,
 * for the places of its logs. A single block is asked for by its hash, which a node that does not have it
 * cannot answer.
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
  const read = await blocksOf(client, genuine, first, last);
  const byNumber = new Map(read.map((block) => [block.number, block]));
  const positionOf = await readPositions(
    client,
    genuine.map(({ log }) => log),
  );
  return { events: eventsOf(genuine, byNumber, positionOf), blocks: read };
}

/** Puts decoded logs together with their blocks and their places in their transactions. */
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
 * The first and the last block, which must be what they were before the logs were read, and those of the
 * logs. Ascending.
 */
async function blocksOf(
  client: RpcClient,
  decoded: readonly DecodedLog[],
  first: ChainBlock,
  last: ChainBlock,
): Promise<ChainBlock[]> {
  // The logs of a single block were read by its hash; a range by numbers may have changed meanwhile.
  if (first.number === last.number) return [last];
  const numbers = new Set([first.number, last.number, ...decoded.map(({ log }) => log.blockNumber)]);
  const ascending = [...numbers].sort((left, right) => left - right);
  const read = await pMap(ascending, (number) => blockAt(client, number), { concurrency: CONCURRENT_BLOCKS });
  const blocks = read.flatMap((block) => block ?? []);
  if (blocks[0]?.hash !== first.hash) throw changed(first.number);
  if (blocks.at(-1)?.hash !== last.hash) throw changed(last.number);
  return blocks;
}

/**
 * The logs and the block were read by separate calls: if they are not of one branch, all of it is read again.
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
