import type { Block, Log } from 'ethers';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import type { RegistryEvent } from '../outbox/registry-event';
import { completeMints, decodeLog } from './decode-log';
import type { RegistryContracts } from './genuine-emitter';
import { ESCROW_TOPICS, REGISTRY_AND_FACTORY_TOPICS } from './registry-topics';

/**
 * All genuine events of the blocks `fromBlock` to `last`, in chain order. Two `eth_getLogs` calls however many tokens there are
 * (escrow events carry their registry unindexed, so they are selected by topic and checked here), and one call for each block
 * that has events, for its time.
 */
export async function readRange(
  client: RpcClient,
  contracts: RegistryContracts,
  fromBlock: number,
  last: Block,
): Promise<RegistryEvent[]> {
  const range = { fromBlock, toBlock: last.number };
  const [own, escrows] = await Promise.all([
    client.getLogs({
      ...range,
      address: [contracts.registry, contracts.titleEscrowFactory],
      topics: [REGISTRY_AND_FACTORY_TOPICS],
    }),
    client.getLogs({ ...range, topics: [ESCROW_TOPICS] }),
  ]);
  const decoded = [...own, ...escrows].sort(chainOrder).flatMap((log) => decodeLog(log, contracts) ?? []);
  const blocks = await blocksOf(
    client,
    decoded.map(({ log }) => log),
    last,
  );
  return completeMints(decoded).map(({ type, tokenId, payload, log }) => ({
    type,
    tokenId,
    payload,
    blockNumber: log.blockNumber,
    blockHash: log.blockHash,
    blockTimestamp: timestampOf(blocks, log),
    transactionHash: log.transactionHash,
    logIndex: log.index,
  }));
}

function chainOrder(left: Log, right: Log): number {
  return left.blockNumber - right.blockNumber || left.index - right.index;
}

async function blocksOf(client: RpcClient, logs: Log[], last: Block): Promise<Map<number, Block>> {
  const blocks = new Map([[last.number, last]]);
  for (const number of new Set(logs.map((log) => log.blockNumber))) {
    const block = blocks.get(number) ?? (await client.getBlock(number));
    if (block) blocks.set(number, block);
  }
  return blocks;
}

/** The logs and the block were read by separate calls: if they are not of one branch, all of it is read again. */
function timestampOf(blocks: Map<number, Block>, log: Log): number {
  const block = blocks.get(log.blockNumber);
  if (block?.hash === log.blockHash) return block.timestamp;
  const message = `Block ${log.blockNumber} changed while it was being read.`;
  throw new ChainError('BLOCK_CHANGED', message, { retryable: true });
}
