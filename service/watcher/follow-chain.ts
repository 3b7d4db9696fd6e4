import { ZeroHash } from 'ethers';
import { type Time, createWakeableSleep, untilAborted, type WakeableSleep } from '../base/time';
import { ChainError, codeOf, ServiceError } from '../base/errors';
import type { FinalBlockReading } from '../chain/finality';
import {
  blockIfThere,
  existingBlock,
  headOf,
  unconfirmedBlock,
  type BlockSpan,
  type ChainBlock,
} from '../chain/read-chain';
import { isBlockAbsent, isThrottled, RangeTooWideError } from '../chain/node-errors';
import type { Chain } from '../chain/chain';
import type { Pauses } from '../config/followed-registries';
import type { FeedCursor, KeptBlock } from '../outbox/feeds';
import type { ChainOrigin } from '../registry/registry-contracts';
import type { RegistryEvent } from '../registry/registry-event';
import { expectLogs } from './pruned-logs';
import { NEAR_HEAD, readRange, type RangeRead, type RegistryReading } from './read-range';

/** The newest block, and the highest final block; negative if there is none. */
interface Tip {
  headBlock: number;
  finalBlock: number;
}

/**
 * An observation of the watcher, and the first block that has not been read after it:
 *
 * - `range`: blocks that were read, with all genuine events in them.
 * - `unchanged`: there is nothing new, and the blocks read earlier are still there. `isAllThere` is false if
 *   the node has fewer blocks than were read.
 * - `mismatch`: a block that was read is no longer on the chain. `reorganised` or an error follows.
 * - `reorganised`: the blocks read after the ancestor are no longer on the chain; the next range begins after
 *   it.
 */
export type Sighting = Tip & { nextBlock: number } & (
    | {
        kind: 'range';
        fromBlock: number;
        toBlock: number;
        events: RegistryEvent[];
        /** The blocks with events, the first and the last. Ascending. */
        blocks: KeptBlock[];
        /** Number of the oldest kept block. */
        oldestKept: number;
      }
    | { kind: 'unchanged'; isAllThere: boolean }
    | { kind: 'mismatch' }
    | { kind: 'reorganised'; ancestor: KeptBlock }
  );

/** Options of `followChain`. */
export interface ChainFollowing extends RegistryReading {
  cursor: FeedCursor;
  /** When the feed began. It distinguishes a restarted chain from a node that lags behind. */
  origin: ChainOrigin | undefined;
  readFinalBlock: FinalBlockReading;
  /** How many blocks back a reorganisation is followed. */
  finalityDepth: number;
  /** How many blocks the provider accepts in one request. */
  span: BlockSpan;
  alarm: Pick<BlockAlarm, 'wait' | 'quicken'>;
  signal: AbortSignal;
}

/** A range with more events than this shrinks the next one, to limit memory and the size of transactions. */
const MANY_EVENTS = 2_000;

/**
 * Yields the blocks from the cursor on, range by range, each once it is final. The first
 * sighting says whether the blocks read earlier are still there. It ends when the signal aborts.
 *
 * @throws ChainError CHAIN_REORGANISED (not retryable) if a reorganisation goes back further than the kept
 *   blocks; CHAIN_REPLACED (retryable) if the node is of another chain; any error of the node. Start again
 *   from the last stored cursor.
 */
export async function* followChain(options: ChainFollowing): AsyncGenerator<Sighting, void, undefined> {
  const { client, finalityDepth, alarm, signal } = options;
  let { cursor } = options;
  let next = nextSighting(options, cursor, true);
  for (let isFirst = true; ; isFirst = false) {
    const sighting = await untilAborted(signal, next);
    if (sighting?.kind === 'range') {
      if (sighting.events.length > 0) alarm.quicken();
      cursor = { nextBlock: sighting.nextBlock, kept: keepRead(cursor.kept, sighting.blocks, finalityDepth) };
      // The next blocks are read while the caller stores these. A node that reports new blocks is not asked
      // whether there is one after its newest.
      const hasHeadsToCome = client.learned.heads !== undefined && sighting.toBlock === sighting.headBlock;
      const before = hasHeadsToCome ? alarm.wait(signal) : undefined;
      next = Promise.resolve(before).then(() => nextSighting(options, cursor, false));
      // Its error is thrown when it is awaited, unless the caller fails before that.
      next.catch(() => undefined);
      yield sighting;
      if (signal.aborted) return;
      continue;
    }
    // Undefined: the provider refused the range; the next one is shorter.
    if (sighting !== undefined) {
      yield sighting;
      if (sighting.kind === 'mismatch') {
        alarm.quicken();
        const ancestor = await untilAborted(signal, ancestorOf(options, cursor, sighting.headBlock));
        const { number } = ancestor;
        options.escrows.rewindTo(number);
        cursor = { nextBlock: number + 1, kept: cursor.kept.filter((block) => block.number <= number) };
        yield { ...sighting, kind: 'reorganised', ancestor, nextBlock: cursor.nextBlock };
      }
      // Also after a reorganisation, so that a node with contradictory answers is not asked without a pause.
      if (!isFirst) await alarm.wait(signal);
    }
    if (signal.aborted) return;
    next = nextSighting(options, cursor, false);
  }
}

/** The first sighting reads no blocks. Undefined if the provider refused the range. */
async function nextSighting(
  options: ChainFollowing,
  cursor: FeedCursor,
  isFirst: boolean,
): Promise<Sighting | undefined> {
  const { client, escrows, readFinalBlock, span, signal } = options;
  const { nextBlock } = cursor;
  const head = await headOf(client);
  const headBlock = head.number;
  const finalBlock = await readFinalBlock(headBlock);
  const tip = { headBlock, finalBlock };
  const farFromHead = Math.max(headBlock - NEAR_HEAD, nextBlock);
  const toBlock = Math.min(finalBlock, farFromHead, nextBlock + span.blocks() - 1);
  if (isFirst || toBlock < nextBlock) {
    const sighting = await compare(options, cursor, head, tip);
    if (isFirst)
      await expectLogs(client, escrows.contracts.registry, nextBlock, { newest: headBlock, signal });
    return sighting;
  }
  return readUpTo(options, cursor, { head, tip, toBlock }).catch(async (error: unknown) => {
    // A node may have removed its old blocks, or their logs.
    if (isBlockAbsent(error) || MISSING.includes(codeOf(error) ?? ''))
      await expectLogs(client, escrows.contracts.registry, nextBlock, { newest: headBlock, signal });
    throw error;
  });
}

/** Reads the next blocks. Undefined if the range has to be shorter. */
async function readUpTo(
  options: ChainFollowing,
  { nextBlock, kept }: FeedCursor,
  { head, tip, toBlock }: { head: ChainBlock; tip: Tip; toBlock: number },
): Promise<Sighting | undefined> {
  const { client, span } = options;
  // The head is not read twice: on an idle chain without confirmations, a look is one call.
  // The first and the last block of several are read again after their logs, which confirms them.
  const readBlock = toBlock === nextBlock ? existingBlock : unconfirmedBlock;
  let first = nextBlock === head.number ? head : await readBlock(client, nextBlock);
  if (!(await isContinuation(options, kept.at(-1), first))) {
    first = await existingBlock(client, nextBlock);
    if (!(await isContinuation(options, kept.at(-1), first))) return { kind: 'mismatch', ...tip, nextBlock };
  }
  const last = toBlock === nextBlock ? first : await readBlock(client, toBlock);
  const read = await readOrShrink(options, first, last, head.number - toBlock);
  if (read === undefined) return undefined;
  if (read.events.length > MANY_EVENTS) span.shrink();
  else span.grow();
  const blocks = read.blocks.map(({ number, hash }) => ({ number, hash }));
  const oldestKept = keepRead(kept, blocks, options.finalityDepth)[0]?.number ?? toBlock;
  const range = { fromBlock: nextBlock, toBlock, nextBlock: toBlock + 1 };
  return { kind: 'range', ...tip, ...range, events: read.events, blocks, oldestKept };
}

async function readOrShrink(
  { span, alarm, signal, ...reading }: ChainFollowing,
  first: ChainBlock,
  last: ChainBlock,
  ahead: number,
): Promise<RangeRead | undefined> {
  try {
    return await readRange(reading, first, last, ahead);
  } catch (error) {
    // A single block is requested by its hash, which may be answered where its range was contradictory.
    const isNarrower = error instanceof RangeTooWideError || CONTRADICTIONS.includes(codeOf(error) ?? '');
    if (isNarrower && first.number < last.number) return void span.shrink();
    reading.slowedBy?.(error);
    if (error instanceof ServiceError) throw error;
    // Many providers give no reason when a query takes too long.
    const isShorter = span.shrink();
    if (!isThrottled(error) || !isShorter) throw error;
    // There is more to read; only the provider needs a pause.
    alarm.quicken();
    await alarm.wait(signal);
    return undefined;
  }
}

/** Codes of answers that contradict each other. */
const CONTRADICTIONS = ['BLOCK_CHANGED', 'ANSWERS_DIFFER'];

/** Codes of what a node lacks. */
const MISSING = ['BLOCK_MISSING', 'RECEIPT_MISSING'];

/** Whether the first unread block is a child of the last block read. */
async function isContinuation(
  { client }: ChainFollowing,
  lastRead: KeptBlock | undefined,
  first: ChainBlock,
): Promise<boolean> {
  if (lastRead?.hash === undefined || first.parentHash === lastRead.hash) return true;
  // Hardhat can mine thousands of blocks at once by creating them only when they are requested. Their
  // children have no parent hash.
  return first.parentHash === ZeroHash && (await isOnChain(client, lastRead));
}

/** Compares the newest block that was read with the chain. */
async function compare(
  options: ChainFollowing,
  { nextBlock, kept }: FeedCursor,
  head: ChainBlock,
  tip: Tip,
): Promise<Sighting> {
  const newest = newestUpTo(kept, Math.min(head.number, nextBlock - 1));
  const there = newest?.hash === head.hash ? 'there' : await isThere(options, newest);
  if (there === 'gone') return { kind: 'mismatch', ...tip, nextBlock };
  const isAllThere = there === 'there' && head.number >= nextBlock - 1;
  return { kind: 'unchanged', ...tip, nextBlock, isAllThere };
}

/** `unknown` if a lagging node does not have the block and is of the same chain. */
async function isThere(
  options: ChainFollowing,
  block: KeptBlock | undefined,
): Promise<'there' | 'gone' | 'unknown'> {
  if (block?.hash === undefined) return (await isSameChain(options)) ? 'there' : 'gone';
  try {
    return (await isOnChain(options.client, block)) ? 'there' : 'gone';
  } catch (error) {
    if (codeOf(error) !== 'BLOCK_MISSING' && !isBlockAbsent(error)) throw error;
    return (await isSameChain(options)) ? 'unknown' : 'gone';
  }
}

async function ancestorOf(
  options: ChainFollowing,
  { kept }: FeedCursor,
  headBlock: number,
): Promise<KeptBlock> {
  if (await isSameChain(options)) return findAncestor(options.client, kept, headBlock);
  const message =
    `The chain was restarted: its block ${options.origin?.number} is not the one that this feed ` +
    'began with. A new feed begins.';
  throw new ChainError('CHAIN_REPLACED', message);
}

async function isSameChain({ client, origin }: ChainFollowing): Promise<boolean> {
  const there = origin && (await blockIfThere(client, origin.number));
  return there === undefined || there.hash === origin?.hash;
}

/**
 * Finds the newest kept block that is still on the chain, by bisection: if a block is on the chain, all
 * blocks before it are.
 *
 * @param head number of the chain's newest block; kept blocks above it are no longer on the chain.
 * @throws ChainError CHAIN_REORGANISED if there is none: the reorganisation goes back further than the kept
 *   blocks.
 */
async function findAncestor(client: Chain, kept: readonly KeptBlock[], head: number): Promise<KeptBlock> {
  const candidates = kept.filter(({ number }) => number <= head);
  let gone = candidates.length;
  let onChain = -1;
  while (gone - onChain > 1) {
    const middle = Math.floor((onChain + gone) / 2);
    const candidate = candidates[middle];
    if (candidate && (await isOnChain(client, candidate))) onChain = middle;
    else gone = middle;
  }
  const ancestor = candidates[onChain];
  if (ancestor) return ancestor;
  const message =
    `The chain was reorganised deeper than the finality depth: block ${kept[0]?.number} ` +
    'is not the one that was read, and earlier blocks are no longer known. ' +
    'Nothing is delivered until an operator acts.';
  const remedy =
    'Compare what was delivered with the chain; ' +
    'then start with a new DATA_DIR (or database) and a larger FINALITY_DEPTH. ' +
    'Keep the old one: it has the issued documents and the subscriptions.';
  throw new ChainError('CHAIN_REORGANISED', message, { remedy });
}

/** @throws ChainError BLOCK_MISSING (retryable) if the node does not have the block. */
async function isOnChain(client: Chain, { number, hash }: KeptBlock): Promise<boolean> {
  if (hash === undefined) return true;
  return (await existingBlock(client, number)).hash === hash;
}

/**
 * The kept blocks after more were read. Blocks older than the finality depth are dropped, except the newest
 * of them: it is not expected to change, so it is always available as a common ancestor.
 *
 * @param kept ascending, like `read`.
 * @param depth number of blocks.
 */
export function keepRead(kept: readonly KeptBlock[], read: readonly KeptBlock[], depth: number): KeptBlock[] {
  const all = [...kept, ...read];
  const last = all.at(-1)?.number ?? 0;
  const ground = all.findLastIndex(({ number }) => number <= last - depth);
  return all.slice(Math.max(ground, 0));
}

/** The newest kept block that is not above `number`. */
export function newestUpTo(kept: readonly KeptBlock[], number: number): KeptBlock | undefined {
  return kept.findLast((block) => block.number <= number);
}

/** Factor by which each pause without an event is longer than the one before. */
const GROWTH = 1.5;

/**
 * Decides when to ask the chain for new blocks. Over a WebSocket the node reports new blocks (`newHeads`),
 * but subscriptions can fail silently, so the chain is polled as well. Providers limit calls per day and most
 * registries are idle most of the time: the pause grows as long as nothing happens.
 */
export class BlockAlarm {
  readonly #sleeper: WakeableSleep;
  #pauseMs: number;
  /** Ends the pause, or the next one. */
  readonly wake: () => void;
  readonly stop: () => void;

  constructor(
    time: Time,
    client: Chain,
    private readonly pauses: Pauses,
  ) {
    this.#sleeper = createWakeableSleep(time);
    this.#pauseMs = pauses.shortest;
    this.wake = this.#sleeper.wake;
    this.stop = client.subscribe(this.wake);
  }

  /**
   * Resolves when the node has reported a block since the last call, when the pause is over, or when the
   * signal aborts.
   */
  async wait(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', this.wake);
    if (!signal.aborted) await this.#sleeper.sleep(this.#pauseMs);
    signal.removeEventListener('abort', this.wake);
    this.#sleeper.reset();
    this.#pauseMs = Math.min(this.#pauseMs * GROWTH, this.pauses.longest);
  }

  /** Shortens the pause again: the registry had an event and more may follow, or there is more to read. */
  quicken(): void {
    this.#pauseMs = this.pauses.shortest;
  }
}
