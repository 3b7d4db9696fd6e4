import { isError, toQuantity, ZeroAddress } from 'ethers';
import { ChainError, codeOf, orUndefined } from '../base/errors';
import { type Time, pause } from '../base/time';
import {
  malformed,
  isBlockAbsent,
  isParameterRefused,
  isRefusal,
  isThrottled,
  nodeErrorOf,
} from './node-errors';
import type { Chain } from './chain';
import type { Rpc } from './node';

/** The fields of a block header that reading logs needs. */
export interface ChainBlock {
  number: number;
  hash: string;
  parentHash: string;
  /** In seconds. */
  timestamp: number;
  /** Hex of the Bloom filter of all its logs. `0x` if the node does not give it. */
  logsBloom: string;
  /** Whether it has no transactions. */
  isEmpty?: boolean;
}

/** A log, with its address in lower case. */
export interface ChainLog {
  address: string;
  topics: string[];
  data: string;
  blockNumber: number;
  blockHash: string;
  transactionHash: string;
  /** 0 if the node does not give it. */
  transactionIndex: number;
  /** The JSON-RPC `logIndex`: position within the block. Some nodes count within the transaction. */
  index: number;
}

/** A transaction and the block that contains it. */
export type TransactionInBlock = Pick<ChainLog, 'transactionHash' | 'blockHash'>;

/**
 * Selects the logs of a range of blocks, or of the block with this hash (EIP-234). `topics`: the first topic
 * is one of these. `otherTopics`: the ones after it; null is any.
 */
export type LogFilter = { address?: string[]; topics?: string[]; otherTopics?: (string | null)[] } & (
  { fromBlock: number; toBlock: number } | { blockHash: string }
);

export const GET_BLOCK = 'eth_getBlockByNumber';

// These functions parse the raw answers: ethers' own blocks and logs check and copy fields that are not
// needed here.

/** The number of the newest block. */
export async function headNumberOf(client: Rpc): Promise<number> {
  return numberOf('eth_blockNumber', await client.send('eth_blockNumber', []));
}

/** The newest block. A node that has just reported one is not asked for it. */
export async function headOf(client: Rpc): Promise<ChainBlock> {
  const { newest } = client.learned.heads ?? {};
  if (client.learned.heads) client.learned.heads.newest = undefined;
  const head = orUndefined(() => blockOf(newest)) ?? (await blockAt(client, 'latest'));
  if (head) return head;
  throw malformed(GET_BLOCK);
}

/** A block by its number or its tag; undefined when the node does not have it. */
export async function blockAt(
  client: Rpc,
  block: number | 'latest' | 'finalized' | 'safe',
): Promise<ChainBlock | undefined> {
  return blockOf(
    await client.send(GET_BLOCK, [typeof block === 'number' ? toQuantity(block) : block, false]),
  );
}

/**
 * A block that a node need not have: it may have pruned its first blocks, or have begun with a snapshot.
 * Undefined if it does not have it, whether it says so with null or an error: for a number, in any words.
 */
export async function blockIfThere(
  client: Rpc,
  block: number | 'finalized' | 'safe',
): Promise<ChainBlock | undefined> {
  return blockAt(client, block).catch((cause: unknown) => {
    const isAnswer = nodeErrorOf(cause) !== undefined || codeOf(cause) === 'NODES_DIFFER';
    if (isBlockAbsent(cause) || (typeof block === 'number' && isAnswer && !isThrottled(cause)))
      return undefined;
    throw cause;
  });
}

/** Blocks by their numbers, in the same order; undefined where the node does not have one. */
export async function blocksAt(client: Rpc, numbers: readonly number[]): Promise<(ChainBlock | undefined)[]> {
  const params = numbers.map((number) => [toQuantity(number), false]);
  return (await client.sendBatch(GET_BLOCK, params)).map(blockOf);
}

/** Parses a block; undefined for null. @throws ChainError ANSWER_MALFORMED (retryable). */
export function blockOf(answer: unknown): ChainBlock | undefined {
  if (answer === null || answer === undefined) return undefined;
  const block = answer as Record<keyof ChainBlock | 'transactions', unknown>;
  const { transactions } = block;
  return {
    number: numberOf(GET_BLOCK, block.number),
    hash: textOf(GET_BLOCK, block.hash),
    parentHash: textOf(GET_BLOCK, block.parentHash),
    timestamp: numberOf(GET_BLOCK, block.timestamp),
    logsBloom: typeof block.logsBloom === 'string' ? block.logsBloom : '0x',
    isEmpty: Array.isArray(transactions) && transactions.length === 0,
  };
}

/**
 * A block that should exist. Behind a load balancer, a node may not have the block that another one has just
 * reported.
 *
 * @throws ChainError BLOCK_MISSING (retryable).
 */
export async function existingBlock(client: Rpc, number: number): Promise<ChainBlock> {
  return existing(number, await blockAt(client, number));
}

/**
 * A block that should exist, of one of several nodes. Another node confirms it when it is read again. With
 * one node, this is `existingBlock`.
 *
 * @throws ChainError BLOCK_MISSING (retryable).
 */
export async function unconfirmedBlock(client: Chain, number: number): Promise<ChainBlock> {
  return existing(number, blockOf(await client.sendUnconfirmed(GET_BLOCK, [toQuantity(number), false])));
}

export function existing(number: number, block: ChainBlock | undefined): ChainBlock {
  if (block) return block;
  throw new ChainError('BLOCK_MISSING', `The node does not have block ${number}.`);
}

/**
 * Reads what is on the chain up to the newest block. The block must still be there afterwards, so everything
 * that was read is of one branch.
 *
 * @throws ChainError BLOCK_CHANGED, BLOCK_MISSING (both retryable).
 */
export async function readUpToHead<T>(client: Rpc, read: (head: ChainBlock) => Promise<T>): Promise<T> {
  const head = await existingBlock(client, await headNumberOf(client));
  const result = await read(head);
  const { hash } = await existingBlock(client, head.number);
  if (hash !== head.hash) throw blockChanged(head.number);
  return result;
}

/** The error for a reorganisation during a reading, or for nodes of one provider that disagree. */
export function blockChanged(number: number): ChainError {
  const message = `Block ${number} changed while the chain was read.`;
  return new ChainError('BLOCK_CHANGED', message);
}

/** Readings of a chain that changes. */
const READINGS = 3;
/** Pause before the next reading. A node that is a block behind has caught up by then. */
const PAUSE_MS = 1_000;

/** Repeats a reading that failed with an error that may pass by itself. */
export async function readAgainWhileItMayPass<T>(time: Time, read: () => Promise<T>): Promise<T> {
  for (let reading = 1; ; reading++) {
    try {
      return await read();
    } catch (error) {
      if (!mayPass(error) || reading === READINGS) throw error;
      await pause(time, PAUSE_MS);
    }
  }
}

/** A node that does not have the block yet fails without revert data; a contract gives a reason. */
function mayPass(error: unknown): boolean {
  if (error instanceof ChainError) return error.retryable;
  return isError(error, 'CALL_EXCEPTION') && error.data === null;
}

/** The matching logs, in chain order. */
export async function logsOf(client: Rpc, filter: LogFilter): Promise<ChainLog[]> {
  const { topics, address, otherTopics = [] } = filter;
  const blocks =
    'blockHash' in filter
      ? { blockHash: filter.blockHash }
      : { fromBlock: toQuantity(filter.fromBlock), toBlock: toQuantity(filter.toBlock) };
  const answer = await client.send('eth_getLogs', [
    { ...blocks, ...(address && { address }), ...(topics && { topics: [topics, ...otherTopics] }) },
  ]);
  return parseLogs('eth_getLogs', answer);
}

/** No block has this hash. */
const UNKNOWN_BLOCK = `0x${'0'.repeat(63)}1`;

/**
 * Whether the node refuses to give the logs of a block that it does not have, as EIP-234 demands. It is asked
 * until its answer is clear. If a node does not refuse, an answer without logs may mean that it is behind.
 */
export async function refusesUnknownBlocks(client: Rpc): Promise<boolean> {
  const { learned } = client;
  if (learned.refusesUnknownBlocks !== undefined) return learned.refusesUnknownBlocks;
  try {
    await logsOf(client, { blockHash: UNKNOWN_BLOCK, address: [ZeroAddress] });
    learned.refusesUnknownBlocks = false;
    return false;
  } catch (error) {
    const isAnswer = nodeErrorOf(error) !== undefined || REFUSALS.includes(codeOf(error) ?? '');
    if (isThrottled(error) || !(isAnswer || isError(error, 'SERVER_ERROR'))) throw error;
    // One of nodes that differ refuses. Any other error may pass, or be of a gateway.
    if (isBlockAbsent(error) || isParameterRefused(error) || codeOf(error) === 'NODES_DIFFER')
      learned.refusesUnknownBlocks = true;
    return true;
  }
}

const REFUSALS = ['NODES_DIFFER', 'ANSWER_MALFORMED'];

/**
 * Parses logs, and brings them into chain order. Some nodes repeat a log, which counts once, and some give
 * the logs of blocks that a reorganisation removed, which do not count.
 *
 * @throws ChainError ANSWER_MALFORMED (retryable).
 */
export function parseLogs(method: string, answer: unknown): ChainLog[] {
  if (!Array.isArray(answer)) throw malformed(method);
  const logs = answer.flatMap((log) =>
    (log as { removed?: unknown } | null)?.removed === true ? [] : logOf(log, method),
  );
  return [...new Map(logs.map((log) => [JSON.stringify(log), log])).values()].sort(chainOrder);
}

/** The order of the chain, except within a transaction whose logs have the same index. */
export function chainOrder(left: ChainLog, right: ChainLog): number {
  return (
    left.blockNumber - right.blockNumber ||
    left.transactionIndex - right.transactionIndex ||
    left.index - right.index
  );
}

/**
 * Names logs by their block, their transaction and their content, with a number if the transaction has the
 * same log several times: nodes count indexes differently.
 *
 * @param logs in order within each transaction. `position`: among those of its transaction.
 */
export function nameLogs(logs: readonly ChainLog[]): { log: ChainLog; name: string; position: number }[] {
  const counts = new Map<string, number>();
  const count = (what: string): number => {
    const before = counts.get(what) ?? 0;
    counts.set(what, before + 1);
    return before;
  };
  return logs.map((log) => {
    const { blockNumber, blockHash, transactionHash, address, topics, data } = log;
    const content = JSON.stringify([blockNumber, blockHash, transactionHash, address, topics, data]);
    const position = count(`${blockHash}:${transactionHash}`);
    return { log, name: `${content} ${count(content)}`, position };
  });
}

/** The transactions of a block, in its order. */
export async function transactionsOf(client: Rpc, blockHash: string): Promise<TransactionInBlock[]> {
  const method = 'eth_getBlockByHash';
  const block = (await client.send(method, [blockHash, false])) as { transactions?: unknown } | null;
  if (!Array.isArray(block?.transactions)) throw malformed(method);
  return block.transactions.map((hash) => ({ transactionHash: textOf(method, hash), blockHash }));
}

function logOf(answer: unknown, method: string): ChainLog {
  const log = answer as Record<'logIndex' | keyof ChainLog, unknown>;
  if (!Array.isArray(log?.topics)) throw malformed(method);
  return {
    address: textOf(method, log.address).toLowerCase(),
    topics: log.topics.map((topic) => textOf(method, topic)),
    data: textOf(method, log.data),
    blockNumber: numberOf(method, log.blockNumber),
    blockHash: textOf(method, log.blockHash),
    transactionHash: textOf(method, log.transactionHash),
    transactionIndex: numberOf(method, log.transactionIndex ?? '0x0'),
    index: numberOf(method, log.logIndex),
  };
}

export function textOf(method: string, value: unknown): string {
  if (typeof value === 'string') return value;
  throw malformed(method);
}

function numberOf(method: string, value: unknown): number {
  const number = typeof value === 'string' ? Number(value) : NaN;
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw malformed(method);
}

/** The number of blocks to read at once, adapted to the provider's limits. It never exceeds `most`. */
export class BlockSpan {
  #blocks: number;

  constructor(private readonly most: number) {
    this.#blocks = most;
  }

  blocks(): number {
    return this.#blocks;
  }

  /**
   * Halves the span after the provider refused, or when the answer was too large to hold at once. Returns
   * false when it is already one block.
   */
  shrink(): boolean {
    if (this.#blocks === 1) return false;
    this.#blocks = Math.floor(this.#blocks / 2);
    return true;
  }

  /** Widens the span after a successful read. */
  grow(): void {
    this.#blocks = Math.min(this.most, Math.ceil(this.#blocks * 1.25));
  }
}

/** The blocks to read. `onProgress` is called after each query with the lowest block that was read. */
export interface LogRange {
  fromBlock: number;
  toBlock: number;
  onProgress?: (block: number) => void;
}

/**
 * After a timeout, the next query asks for an eighth of the blocks: each such attempt costs half a minute.
 */
const HALVINGS_AFTER_TIMEOUT = 3;

/**
 * Reads a range of blocks, the newest first. It asks for the whole range at once, and for fewer blocks only
 * after a refusal.
 *
 * @param read reads the blocks from `first` to `last`.
 * @param take receives each result, the newest blocks first; true ends the reading.
 * @returns whether `take` ended it.
 * @throws any error of the node for a single block, and any error when it cannot be reached.
 */
export async function readBackwards<T>(
  { fromBlock, toBlock, onProgress }: LogRange,
  read: (first: number, last: number) => Promise<T>,
  take: (result: T) => boolean,
): Promise<boolean> {
  const span = new BlockSpan(Math.max(1, toBlock - fromBlock + 1));
  for (let last = toBlock; last >= fromBlock;) {
    const first = Math.max(fromBlock, last - span.blocks() + 1);
    try {
      if (take(await read(first, last))) return true;
    } catch (error) {
      narrow(span, error);
      continue;
    }
    span.grow();
    last = first - 1;
    onProgress?.(first);
  }
  return false;
}

/** Narrows the span after a refusal. @throws any other error, and one about a single block. */
function narrow(span: BlockSpan, error: unknown): void {
  if (!(isRefusal(error) || isThrottled(error)) || !span.shrink()) throw error;
  if (isError(error, 'TIMEOUT')) for (let more = 1; more < HALVINGS_AFTER_TIMEOUT; more++) span.shrink();
}
