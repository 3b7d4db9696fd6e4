import { ZeroHash } from 'ethers';
import type { BlockSpan } from '../chain/block-span';
import { blockAt, headNumberOf, type ChainBlock } from '../chain/read-chain';
import { isRangeRefused, isThrottled } from '../chain/refusals';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError, ServiceError, codeOf } from '../base/errors';
import type { FeedCursor, KeptBlock } from '../outbox/feed-cursor';
import type { RegistryContracts } from '../registry/registry-contracts';
import type { RegistryEvent } from '../registry/registry-event';
import { untilAborted } from '../base/until-aborted';
import type { BlockAlarm } from './block-alarm';
import { findAncestor, isOnChain } from './find-ancestor';
import { keepRead, newestUpTo } from './kept-blocks';
import { readByReceipts } from './read-by-receipts';
import { readRange, type RangeRead } from './read-range';

/**
 * What the watcher saw:
 *
 * - `range`: blocks that were read, with all genuine events in them.
 * - `unchanged`: nothing is new, and what was read is still there; `isAllThere` unless the node has fewer
 *   blocks than were read.
 * - `mismatch`: something that was read is no longer there. What follows is `reorganised`, or an error.
 * - `reorganised`: the chain no longer has what was read after the ancestor; the next range begins behind it.
 */
export type Sighting = { headBlock: number } & (
  | ({ kind: 'range' } & BlockRange)
  | { kind: 'unchanged'; isAllThere: boolean }
  | { kind: 'mismatch' }
  | { kind: 'reorganised'; ancestor: KeptBlock }
);

/** Blocks that were read together. */
export interface BlockRange {
  fromBlock: number;
  toBlock: number;
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
  /**
   * Hash of block 0 when the feed began: tells a chain that was started anew from a node that lags behind.
   */
  genesisHash: string;
  confirmations: number;
  /** How many blocks back a reorganisation is followed. */
  finalityDepth: number;
  /** How many blocks the provider answers for at once. */
  span: BlockSpan;
  alarm: BlockAlarm;
  signal: AbortSignal;
}

/**
 * So near to the head blocks are read one by one: a range is asked for by numbers, and a node that has only
 * some of its blocks yet answers with the logs of those.
 */
const NEAR_HEAD = 8;
/** More events than this in one range are not good to hold, and to store, at once. */
const MANY_EVENTS = 2_000;

/**
 * The blocks from the cursor on, range after range, for ever; each range is yielded once it has its
 * confirmations. The first sighting is whether what was read before is still there. Ends when the signal
 * aborts.
 *
 * @throws ChainError CHAIN_REORGANISED (not retryable) when a reorganisation is deeper than what is kept;
 *   CHAIN_REPLACED when it is another chain; whatever the node answers otherwise: start again from the last
 *   cursor that was stored.
 */
export async function* watch(options: WatchOptions): AsyncGenerator<Sighting, void, undefined> {
  const { client, finalityDepth, alarm, signal } = options;
  let cursor = options.cursor;
  let next: Promise<Sighting | undefined> = headNumberOf(client).then((headBlock) =>
    compare(options, cursor, headBlock),
  );
  for (let isFirst = true; ; isFirst = false) {
    const sighting = await untilAborted(signal, next);
    if (sighting !== undefined) yield sighting;
    if (sighting?.kind === 'mismatch' || (sighting?.kind === 'range' && sighting.events.length > 0))
      alarm.quicken();
    if (sighting?.kind === 'mismatch') {
      const { headBlock } = sighting;
      const ancestor = await untilAborted(signal, ancestorOf(options, cursor, headBlock));
      const { number } = ancestor;
      cursor = { nextBlock: number + 1, kept: cursor.kept.filter((block) => block.number <= number) };
      yield { kind: 'reorganised', ancestor, headBlock };
    }
    if (sighting?.kind === 'range') {
      cursor = {
        nextBlock: sighting.toBlock + 1,
        kept: keepRead(cursor.kept, sighting.blocks, finalityDepth),
      };
    }
    // After a reorganisation too: a node that contradicts itself is not asked without a pause.
    if (sighting?.kind !== 'range' && sighting !== undefined && !isFirst) await alarm.wait(signal);
    if (signal.aborted) return;
    next = look(options, cursor);
  }
}

/** Undefined: the provider refused the range, and a shorter one is to be asked for. */
async function look(options: WatchOptions, cursor: FeedCursor): Promise<Sighting | undefined> {
  const { client, confirmations, span } = options;
  const { nextBlock, kept } = cursor;
  const headBlock = await headNumberOf(client);
  const farFromHead = Math.max(headBlock - NEAR_HEAD, nextBlock);
  const toBlock = Math.min(headBlock - confirmations, farFromHead, nextBlock + span.blocks() - 1);
  if (toBlock < nextBlock) return compare(options, cursor, headBlock);
  const first = await existingBlock(client, nextBlock);
  if (!(await isContinuation(options, kept.at(-1), first))) return { kind: 'mismatch', headBlock };
  const last = toBlock === nextBlock ? first : await existingBlock(client, toBlock);
  const read = await readOrShrink(options, first, last);
  if (read === undefined) return undefined;
  if (read.events.length > MANY_EVENTS) span.shrink();
  else span.grow();
  const blocks = read.blocks.map(({ number, hash }) => ({ number, hash }));
  const oldestKept = keepRead(kept, blocks, options.finalityDepth)[0]?.number ?? toBlock;
  const { events } = read;
  return { kind: 'range', fromBlock: nextBlock, toBlock, headBlock, events, blocks, oldestKept };
}

async function readOrShrink(
  { client, contracts, span, alarm, signal }: WatchOptions,
  first: ChainBlock,
  last: ChainBlock,
): Promise<RangeRead | undefined> {
  try {
    return await readRange(client, contracts, first, last);
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    // Whatever the reason is (many providers answer nothing at all for what takes them too long), less is
    // asked for the next time.
    const isShorter = span.shrink();
    const isRefused = isRangeRefused(error);
    if (isThrottled(error)) {
      if (!isShorter) throw error;
      // There is something to read, and it is only the provider that needs a pause.
      alarm.quicken();
      await alarm.wait(signal);
    } else if (first.number === last.number && (span.failedAgain(last.number) || isRefused)) {
      return readByReceipts(client, contracts, last);
    } else if (!isRefused) {
      throw error;
    }
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
  // Hardhat mines thousands of blocks at once by not making them up until they are asked for: their children
  // know no parent.
  return first.parentHash === ZeroHash && (await isOnChain(client, lastRead));
}

/** Whether what was read is still on the chain. */
async function compare(
  options: WatchOptions,
  { nextBlock, kept }: FeedCursor,
  headBlock: number,
): Promise<Sighting> {
  const newest = newestUpTo(kept, Math.min(headBlock, nextBlock - 1));
  const there = await isThere(options, newest);
  if (there === 'gone') return { kind: 'mismatch', headBlock };
  return { kind: 'unchanged', headBlock, isAllThere: there === 'there' && headBlock >= nextBlock - 1 };
}

/** A node that lags may not have the block: then nothing is known, unless it is of another chain. */
async function isThere(
  options: WatchOptions,
  block: KeptBlock | undefined,
): Promise<'there' | 'gone' | 'unknown'> {
  if (block?.hash === undefined) return (await isSameChain(options)) ? 'there' : 'gone';
  try {
    return (await isOnChain(options.client, block)) ? 'there' : 'gone';
  } catch (error) {
    if (codeOf(error) !== 'BLOCK_MISSING') throw error;
    return (await isSameChain(options)) ? 'unknown' : 'gone';
  }
}

async function ancestorOf(
  options: WatchOptions,
  { kept }: FeedCursor,
  headBlock: number,
): Promise<KeptBlock> {
  if (await isSameChain(options)) return findAncestor(options.client, kept, headBlock);
  const message =
    'The chain was started anew: its block 0 is not the one this feed began with. A new feed begins.';
  throw new ChainError('CHAIN_REPLACED', message, { retryable: true });
}

async function isSameChain({ client, genesisHash }: WatchOptions): Promise<boolean> {
  const genesis = await blockAt(client, 0);
  return genesis === undefined || genesis.hash === genesisHash;
}

/**
 * A block that the node has just told of but does not have (a provider behind a load balancer) is worth
 * asking for again.
 */
async function existingBlock(client: RpcClient, number: number): Promise<ChainBlock> {
  const block = await blockAt(client, number);
  if (block) return block;
  throw new ChainError('BLOCK_MISSING', `The node does not have block ${number} yet.`, { retryable: true });
}
