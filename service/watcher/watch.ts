import { ZeroHash } from 'ethers';
import { isRangeRefused, isThrottled } from '../chain/refusals';
import { blockAt, headNumberOf, type ChainBlock } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../errors';
import type { FeedCursor, KeptBlock } from '../outbox/feed-cursor';
import type { RegistryEvent } from '../outbox/registry-event';
import type { BlockAlarm } from './block-alarm';
import { createBlockSpan, type BlockSpan } from './block-span';
import { findAncestor, isOnChain } from './find-ancestor';
import type { RegistryContracts } from './genuine-emitter';
import { keepRead, newestUpTo } from './kept-blocks';
import { readRange } from './read-range';

/**
 * What the watcher saw:
 *
 * - `range`: blocks that were read, with all genuine events in them.
 * - `reorganised`: the chain no longer has what was read after the ancestor; the next range begins behind it.
 * - `unchanged`: nothing is new, and what was read is still there.
 */
export type Sighting =
  | ({ kind: 'range' } & BlockRange)
  | { kind: 'reorganised'; ancestor: KeptBlock; headBlock: number }
  | { kind: 'unchanged'; headBlock: number };

/** Blocks that were read together. */
export interface BlockRange {
  fromBlock: number;
  toBlock: number;
  headBlock: number;
  events: RegistryEvent[];
  /** The blocks with events, the first and the last. Ascending. */
  blocks: KeptBlock[];
  /** Number of the oldest block that is still kept. */
  oldestKept: number;
}

/** What the watcher needs. */
export interface WatchOptions {
  client: RpcClient;
  contracts: RegistryContracts;
  cursor: FeedCursor;
  /** Hash of block 0 when the feed began: tells a chain that was started anew from a node that lags behind. */
  genesisHash: string;
  confirmations: number;
  /** How many blocks back a reorganisation is followed. */
  finalityDepth: number;
  alarm: BlockAlarm;
  signal: AbortSignal;
}

const MOST_BLOCKS = 2_000;
/**
 * So near to the head blocks are read one by one: a range is asked for by numbers, and a node that has only some of its blocks yet
 * answers with the logs of those.
 */
const NEAR_HEAD = 8;
/** More events than this in one range are not good to hold, and to store, at once. */
const MANY_EVENTS = 2_000;

/**
 * The blocks from the cursor on, range after range, for ever; each range is yielded once it has its confirmations. Ends when the
 * signal aborts.
 *
 * @throws ChainError CHAIN_REORGANISED (not retryable) when a reorganisation is deeper than what is kept; CHAIN_REPLACED when it is
 *   another chain; whatever the node answers otherwise: start again from the last cursor that was stored.
 */
export async function* watch(options: WatchOptions): AsyncGenerator<Sighting, void, undefined> {
  const { client, finalityDepth, signal } = options;
  const span = createBlockSpan(MOST_BLOCKS);
  // First of all whether what was read before is still there: it may be long ago, and reading on may fail for other reasons.
  const first = await compare(options, options.cursor, await headNumberOf(client));
  let cursor = cursorAfter(first, options.cursor, finalityDepth);
  yield first;
  while (!signal.aborted) {
    const sighting = await look(options, cursor, span);
    if (sighting === undefined) continue;
    cursor = cursorAfter(sighting, cursor, finalityDepth);
    yield sighting;
    if (sighting.kind === 'unchanged') await options.alarm.wait(signal);
  }
}

function cursorAfter(sighting: Sighting, cursor: FeedCursor, finalityDepth: number): FeedCursor {
  if (sighting.kind === 'unchanged') return cursor;
  if (sighting.kind === 'range') {
    const kept = keepRead(cursor.kept, sighting.blocks, finalityDepth);
    return { nextBlock: sighting.toBlock + 1, kept };
  }
  const { number: ancestor } = sighting.ancestor;
  return { nextBlock: ancestor + 1, kept: cursor.kept.filter(({ number }) => number <= ancestor) };
}

/** Undefined: the provider refused the range, and a shorter one is to be asked for. */
async function look(
  options: WatchOptions,
  cursor: FeedCursor,
  span: BlockSpan,
): Promise<Sighting | undefined> {
  const { client, confirmations } = options;
  const { nextBlock, kept } = cursor;
  const headBlock = await headNumberOf(client);
  const farFromHead = Math.max(headBlock - NEAR_HEAD, nextBlock);
  const toBlock = Math.min(headBlock - confirmations, farFromHead, nextBlock + span.blocks() - 1);
  if (toBlock < nextBlock) return compare(options, cursor, headBlock);
  const first = await existingBlock(client, nextBlock);
  if (!(await isContinuation(options, kept.at(-1), first))) return reorganised(options, kept, headBlock);
  const last = toBlock === nextBlock ? first : await existingBlock(client, toBlock);
  try {
    const { events, blocks } = await readRange(client, options.contracts, first, last);
    if (events.length > MANY_EVENTS) span.shrink();
    else span.grow();
    const keptBlocks = blocks.map(({ number, hash }) => ({ number, hash }));
    const oldestKept = keepRead(kept, keptBlocks, options.finalityDepth)[0]?.number ?? toBlock;
    return {
      kind: 'range',
      fromBlock: nextBlock,
      toBlock,
      headBlock,
      events,
      blocks: keptBlocks,
      oldestKept,
    };
  } catch (error) {
    if (!isRangeRefused(error) || !span.shrink()) throw error;
    if (isThrottled(error)) await options.alarm.wait(options.signal);
    return undefined;
  }
}

/** The first unread block must be a child of the last one read. */
async function isContinuation(
  { client }: WatchOptions,
  lastRead: KeptBlock | undefined,
  first: ChainBlock,
): Promise<boolean> {
  if (lastRead?.hash === undefined || first.parentHash === lastRead.hash) return true;
  // Hardhat mines thousands of blocks at once by not making them up until they are asked for: their children know no parent.
  return first.parentHash === ZeroHash && (await isOnChain(client, lastRead));
}

/** Whether what was read is still on the chain. */
async function compare(
  options: WatchOptions,
  { nextBlock, kept }: FeedCursor,
  headBlock: number,
): Promise<Sighting> {
  const newest = newestUpTo(kept, Math.min(headBlock, nextBlock - 1));
  if (await isKeptBlockOnChain(options, newest)) return { kind: 'unchanged', headBlock };
  return reorganised(options, kept, headBlock);
}

/** A node that lags may not have the block: then nothing is known, and nothing has changed. */
async function isKeptBlockOnChain(options: WatchOptions, block: KeptBlock | undefined): Promise<boolean> {
  if (block === undefined) return isSameChain(options);
  return isOnChain(options.client, block).catch(async (error: unknown) => {
    if (error instanceof ChainError && error.code === 'BLOCK_MISSING') return isSameChain(options);
    throw error;
  });
}

async function reorganised(
  options: WatchOptions,
  kept: readonly KeptBlock[],
  headBlock: number,
): Promise<Sighting> {
  if (!(await isSameChain(options))) {
    const message =
      'The chain was started anew: its block 0 is not the one this feed began with. A new feed begins.';
    throw new ChainError('CHAIN_REPLACED', message, { retryable: true });
  }
  return { kind: 'reorganised', ancestor: await findAncestor(options.client, kept, headBlock), headBlock };
}

async function isSameChain({ client, genesisHash }: WatchOptions): Promise<boolean> {
  const genesis = await blockAt(client, 0);
  return genesis === undefined || genesis.hash === genesisHash;
}

/** A block that the node has just told of but does not have (a provider behind a load balancer) is worth asking for again. */
async function existingBlock(client: RpcClient, number: number): Promise<ChainBlock> {
  const block = await blockAt(client, number);
  if (block) return block;
  throw new ChainError('BLOCK_MISSING', `The node does not have block ${number} yet.`, { retryable: true });
}
