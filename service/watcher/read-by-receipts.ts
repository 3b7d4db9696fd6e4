import { concurrently } from '../chain/concurrently';
import { receiptLogsOf, transactionsOf, type ChainBlock } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ESCROW_TOPICS, REGISTRY_AND_FACTORY_TOPICS } from '../registry/abi';
import { genuineOf } from '../registry/decode-log';
import type { RegistryContracts } from '../registry/registry-contracts';
import { eventsOf, type RangeRead } from './read-range';

/** Receipts asked for at the same time. */
const CONCURRENT_RECEIPTS = 8;

/**
 * Reads a block from the receipts of all its transactions. For a block of which the provider gives no logs
 * because there are too many that match: anybody can fill a block with logs that look like those of title
 * escrows.
 */
export async function readByReceipts(
  client: RpcClient,
  contracts: RegistryContracts,
  block: ChainBlock,
): Promise<RangeRead> {
  const transactions = await transactionsOf(client, block.hash);
  const logs = await concurrently(transactions, CONCURRENT_RECEIPTS, (hash) =>
    receiptLogsOf(client, hash, block.hash),
  );
  const own = [contracts.registry, contracts.titleEscrowFactory];
  const wanted = logs.flat().filter(({ address, topics: [topic = ''] }) => {
    return own.includes(address)
      ? REGISTRY_AND_FACTORY_TOPICS.includes(topic)
      : ESCROW_TOPICS.includes(topic);
  });
  const genuine = genuineOf(wanted, contracts);
  return { events: eventsOf(genuine, new Map([[block.number, block]])), blocks: [block] };
}
