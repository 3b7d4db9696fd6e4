import { openFeed, type KeptBlock, type OpenFeed } from '../../../service/outbox/feeds';
import { recordRange } from '../../../service/outbox/record-range';
import type { RegistryEvent } from '../../../service/registry/registry-event';
import type { Database } from '../../../service/database/database';

/** A registry that exists only in a database. */
export const SAMPLE_REGISTRY = {
  chainKey: 'hardhat',
  chainId: 31337,
  registryAddress: `0x${'5b'.repeat(20)}`,
};

/** The name of the sample registry's feed. */
export const SAMPLE_FEED = `31337:${SAMPLE_REGISTRY.registryAddress}:0123456789abcdef`;

/** An event of token `tokenId` in a block; `branch` tells blocks of the same number apart. */
export function eventIn(
  blockNumber: number,
  tokenId: bigint,
  changes: Partial<RegistryEvent> = {},
  branch = 'a',
): RegistryEvent {
  return {
    type: 'holder_transfer',
    tokenId,
    payload: { fromHolder: `0x${'01'.repeat(20)}`, toHolder: `0x${'02'.repeat(20)}`, remark: '0x' },
    blockNumber,
    blockHash: hashOf(blockNumber, branch),
    blockTimestamp: 1_750_000_000 + blockNumber,
    transactionHash: `0x${(BigInt(blockNumber) * 1_000_000n + tokenId).toString(16).padStart(64, '0')}`,
    logIndex: Number(tokenId),
    blockLogIndex: changes.logIndex ?? Number(tokenId),
    ...changes,
  };
}

/** The hash of a block on a branch. */
export function hashOf(blockNumber: number, branch = 'a'): string {
  return `0x${blockNumber.toString(16)}${branch}`;
}

/** Opens the sample feed from block 1 on. */
export function openSampleFeed({ db }: Database): Promise<OpenFeed> {
  return openFeed(db, SAMPLE_FEED, 1, 1);
}

/** Records events as a range that ends with the given block. */
export async function record(
  database: Database,
  feed: OpenFeed,
  toBlock: number,
  events: RegistryEvent[],
  now: number,
  branch = 'a',
): Promise<number> {
  const numbers = [...new Set([...events.map(({ blockNumber }) => blockNumber), toBlock])];
  const blocks = numbers.map((number): KeptBlock => ({ number, hash: hashOf(number, branch) }));
  const range = { events, blocks, oldestKept: 0, nextBlock: toBlock + 1 };
  const { added } = await recordRange(database, feed, SAMPLE_REGISTRY, range, now);
  return added;
}
