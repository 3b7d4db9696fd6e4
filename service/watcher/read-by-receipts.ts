import { receiptLogsOf, transactionsOf, type ChainBlock } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';
import { ESCROW_TOPICS, REGISTRY_AND_FACTORY_TOPICS } from '../registry/abi';
import { genuineOf } from '../registry/decode-log';
import type { RegistryContracts } from '../registry/registry-contracts';
import { positionsAmong } from './log-positions';
import { eventsOf, type RangeRead } from './read-range';

/**
 * Reads a block from the receipts of all its transactions. It is used for blocks whose logs the provider
 * refuses because too many match: anybody can fill a block with logs that look like those of title escrows.
 */
export async function readByReceipts(
  client: RpcClient,
  contracts: RegistryContracts,
  block: ChainBlock,
): Promise<RangeRead> {
  const hashes = await transactionsOf(client, block.hash);
  const transactions = hashes.map((transactionHash) => ({ transactionHash, blockHash: block.hash }));
  const receipts = await receiptLogsOf(client, transactions);
  const logs = receipts.flatMap((receipt, index) => receipt ?? missing(hashes[index]));
  const own = [contracts.registry, contracts.titleEscrowFactory];
  const wanted = logs.filter(({ address, topics: [topic = ''] }) => {
    return own.includes(address)
      ? REGISTRY_AND_FACTORY_TOPICS.includes(topic)
      : ESCROW_TOPICS.includes(topic);
  });
  const genuine = genuineOf(wanted, contracts);
  const blocks = new Map([[block.number, block]]);
  return { events: eventsOf(genuine, blocks, positionsAmong(logs)), blocks: [block] };
}

function missing(transactionHash: string | undefined): never {
  const message =
    `The node does not have the receipt of transaction ${transactionHash}, ` +
    'and refuses the logs of its block. If the block is old, ' +
    'use a node that keeps its whole index of transactions (geth: --history.transactions 0).';
  throw new ChainError('RECEIPT_MISSING', message, { retryable: true });
}
