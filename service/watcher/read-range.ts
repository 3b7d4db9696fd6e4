import { blockAt, logsOf, type ChainBlock, type ChainLog, type LogFilter } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import type { RegistryEvent } from '../outbox/registry-event';
import { completeMints, decodeLog } from './decode-log';
import type { RegistryContracts } from './genuine-emitter';
import { ESCROW_TOPICS, REGISTRY_AND_FACTORY_TOPICS } from './registry-topics';

/** Blocks asked for at the same time. */
const CONCURRENT_BLOCKS = 8;
/** How often two answers to the same question may differ before the reading is given up for a while. */
const READINGS = 3;

/** What a range of blocks holds. */
export interface RangeRead {
  events: RegistryEvent[];
  /** The blocks with events, the first and the last one. Ascending. */
  blocks: ChainBlock[];
}

/**
 * All genuine events of the blocks `first` to `last`, in chain order. Two `eth_getLogs` queries however many tokens there are
 * (escrow events carry their registry unindexed, so they are selected by topic and checked here), and one call for each block
 * that has events, for its time.
 *
 * Each query is asked twice and the answers must agree: providers behind a load balancer now and then leave logs out, and what is
 * left out here would be lost. A single block is asked for by its hash, which a node that does not have it cannot answer.
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
  const logs = [...own, ...escrows].sort(chainOrder);
  const decoded = logs.flatMap((log) => decodeLog(log, contracts) ?? []);
  const read = await blocksOf(
    client,
    decoded.map(({ log }) => log),
    first,
    last,
  );
  const events = completeMints(decoded).map(({ type, tokenId, payload, log }) => ({
    type,
    tokenId,
    payload,
    blockNumber: log.blockNumber,
    blockHash: log.blockHash,
    blockTimestamp: timestampOf(read, log),
    transactionHash: log.transactionHash,
    logIndex: log.index,
  }));
  return { events, blocks: [...read.values()].sort((left, right) => left.number - right.number) };
}

function chainOrder(left: ChainLog, right: ChainLog): number {
  return left.blockNumber - right.blockNumber || left.index - right.index;
}

async function readTwice(client: RpcClient, filter: LogFilter): Promise<ChainLog[]> {
  for (let reading = 1; reading <= READINGS; reading++) {
    const [logs, again] = await Promise.all([logsOf(client, filter), logsOf(client, filter)]);
    if (fingerprintOf(logs) === fingerprintOf(again)) return logs;
  }
  const message = 'The node gives different logs each time it is asked for the same blocks.';
  throw new ChainError('ANSWERS_DIFFER', message, { retryable: true });
}

function fingerprintOf(logs: readonly ChainLog[]): string {
  return logs.map(({ blockHash, index }) => `${blockHash}:${index}`).join();
}

/** The last block and the blocks of the logs; the first and the last must be what they were before the logs were read. */
async function blocksOf(
  client: RpcClient,
  logs: readonly ChainLog[],
  first: ChainBlock,
  last: ChainBlock,
): Promise<Map<number, ChainBlock>> {
  const numbers = new Set(logs.map(({ blockNumber }) => blockNumber));
  // The logs of a single block were read by its hash; a range by numbers may have changed meanwhile.
  if (first.number === last.number) return new Map([[last.number, last]]);
  const blocks = new Map<number, ChainBlock>();
  const wanted = [...numbers.add(first.number).add(last.number)];
  const readNext = async (): Promise<void> => {
    for (let number = wanted.pop(); number !== undefined; number = wanted.pop()) {
      const block = await blockAt(client, number);
      if (block) blocks.set(number, block);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_BLOCKS }, readNext));
  for (const { number, hash } of [first, last]) if (blocks.get(number)?.hash !== hash) throw changed(number);
  return blocks;
}

/** The logs and the block were read by separate calls: if they are not of one branch, all of it is read again. */
function timestampOf(blocks: ReadonlyMap<number, ChainBlock>, { blockNumber, blockHash }: ChainLog): number {
  const block = blocks.get(blockNumber);
  if (block?.hash === blockHash) return block.timestamp;
  throw changed(blockNumber);
}

function changed(number: number): ChainError {
  const message = `Block ${number} changed while it was being read.`;
  return new ChainError('BLOCK_CHANGED', message, { retryable: true });
}
