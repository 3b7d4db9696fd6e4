import { randomBytes } from 'node:crypto';
import type { Database } from '../service/database/database';
import { openFeed, setHeld, type OpenFeed } from '../service/outbox/feeds';
import { recordRange } from '../service/outbox/record-range';
import type { RegistryEvent } from '../service/registry/registry-event';

const REGISTRY = { chainKey: 'hardhat', chainId: 31337, registryAddress: `0x${'5b'.repeat(20)}` };
/** Token ids are hashes, so these must be as long. */
const FIRST_TOKEN = 2n ** 255n;
const EVENTS_OF_A_RANGE = 1_000;
/** The parties of each event. */
export const FROM_HOLDER = `0x${'01'.repeat(20)}`;
export const TO_HOLDER = `0x${'02'.repeat(20)}`;

/** The number of events, and their registry. */
export interface Filling {
  tokens: number;
  eventsPerToken: number;
  /** The registry of the events. Default: any registry. */
  registryAddress?: string;
}

/** Records made-up events of a feed as the watcher does, in ranges of blocks. They are due at once. */
export async function fillOutbox(database: Database, feed: string, filling: Filling): Promise<void> {
  const registry = { ...REGISTRY, registryAddress: filling.registryAddress ?? REGISTRY.registryAddress };
  const open = await openFeed(database.db, feed, 1, 1);
  const { nextBlock } = open.cursor;
  const total = filling.tokens * filling.eventsPerToken;
  // As on a chain, the events of a token are spread over the run.
  const run = randomBytes(8).toString('hex');
  for (let first = 0; first < total; first += EVENTS_OF_A_RANGE) {
    const count = Math.min(EVENTS_OF_A_RANGE, total - first);
    const events = Array.from({ length: count }, (_, index) =>
      transferOf(BigInt((first + index) % filling.tokens), first + index, run, nextBlock - 1),
    );
    const range = { events, blocks: [], oldestKept: 0, nextBlock };
    await recordRange(database, open, registry, range, Date.now());
  }
  await setHeld(database.db, open, 0);
}

/** Records a block with `count` events, each of another token. Returns the channels that they are for. */
export async function recordBlock(
  database: Database,
  feed: OpenFeed,
  block: number,
  count = 1,
): Promise<{ channels: readonly number[] }> {
  const run = randomBytes(8).toString('hex');
  const events = Array.from({ length: count }, (_, index) => transferOf(BigInt(index), index, run, block));
  const range = { events, blocks: [], oldestKept: 0, nextBlock: block + 1 };
  return recordRange(database, feed, REGISTRY, range, Date.now());
}

function transferOf(tokenId: bigint, number: number, run: string, blockNumber: number): RegistryEvent {
  return {
    type: 'holder_transfer',
    tokenId: FIRST_TOKEN + tokenId,
    payload: { fromHolder: FROM_HOLDER, toHolder: TO_HOLDER, remark: '0x' },
    blockNumber,
    blockHash: `0x${'b1'.repeat(32)}`,
    blockTimestamp: 1_750_000_000,
    transactionHash: `0x${run}${number.toString(16).padStart(48, '0')}`,
    logIndex: 3,
    blockLogIndex: 3,
  };
}
