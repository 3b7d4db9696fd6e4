import { toQuantity } from 'ethers';
import pMap from 'p-map';
import { ChainError } from '../base/errors';
import { Bloom } from '../chain/bloom';
import {
  blockChanged,
  blocksAt,
  existingBlock,
  logsOf,
  nameLogs,
  transactionsOf,
  type ChainBlock,
  type ChainLog,
  type TransactionInBlock,
} from '../chain/read-chain';
import { logsOfBlocks, receiptLogsOf, receiptMissing, transactionIn } from '../chain/read-receipts';
import type { Chain } from '../chain/chain';
import type { RegistryContracts } from '../registry/registry-contracts';
import { ESCROW_TOPICS, completeMints, genuineOf, type DecodedLog } from '../registry/decode-log';
import type { RegistryEvent } from '../registry/registry-event';
import type { KnownEscrows } from './known-escrows';
import { FEW_ESCROWS, readLogs, type LogReading, type LogsWanted } from './log-ways';

/** The contents of a range of blocks. */
export interface RangeRead {
  events: RegistryEvent[];
  /** The blocks with events, the first and the last one. Ascending. */
  blocks: ChainBlock[];
}

/** Blocks whose logs are all requested at the same time. */
const CONCURRENT_BLOCKS = 8;
/**
 * This close to the head, blocks are read one by one. A range is requested by block numbers, and a node that
 * does not have all of its blocks yet returns the logs of those it has.
 */
export const NEAR_HEAD = 8;
/** The highest index that the database holds. */
const HIGHEST_INDEX = 2 ** 31 - 1;

/** A registry on its chain, as it is read. */
export interface RegistryReading {
  client: Chain;
  escrows: KnownEscrows;
  /** Called with each error for which the reading takes longer. */
  slowedBy?(this: void, error: unknown): void;
}

/**
 * Reads all genuine events of the blocks `first` to `last`, in chain order. Where the node allows it, it
 * makes two `eth_getLogs` queries for any number of tokens: title escrow events carry their registry
 * unindexed, so they are selected by topic and checked here. log-ways.ts has the other ways. It also makes
 * one call per block with events, for the block's time, and at most one per transaction with events, for all
 * of its logs.
 *
 * @param ahead how many blocks the chain has after these.
 * @throws ChainError ANSWERS_DIFFER (retryable) if the node contradicts itself, as when a receipt has an
 *   event that the logs of its block lack; NODES_DIFFER (retryable); every error of readLogs.
 */
export async function readRange(
  reading: RegistryReading,
  first: ChainBlock,
  last: ChainBlock,
  ahead = 0,
): Promise<RangeRead> {
  const isSingle = first.number === last.number;
  const read = await readOnce(reading, first, last, { ahead, byHash: isSingle });
  if (!('lacking' in read)) return read;
  // A node may know no logs of a block's hash.
  const again = isSingle ? await readOnce(reading, first, last, { ahead, byHash: false }) : read;
  if ('lacking' in again) throw leftOut(again.lacking);
  return again;
}

/** `lacking`: an event that a receipt has, and the node's logs lack. */
async function readOnce(
  { client, escrows, slowedBy }: RegistryReading,
  first: ChainBlock,
  last: ChainBlock,
  how: Pick<LogsWanted, 'ahead' | 'byHash'>,
): Promise<RangeRead | { lacking: ChainLog }> {
  const { contracts } = escrows;
  const learnMints = (): Promise<void> => readMintsBefore(client, escrows, first.number);
  const isOfThisNode = !client.isOfSeveral;
  const wanted = { escrows, first, last, ...how, isOfThisNode, learnMints, byReceipts: new Map(), slowedBy };
  const reading = await client.agree(blocksIn(first, last), async (node) => {
    const read = await readLogs(node, wanted);
    const genuine = genuineOf(read.logs, contracts);
    return { value: { ...read, genuine }, names: namesOf(genuine) };
  });
  const { way, genuine } = reading;
  const isSingle = first.number === last.number;
  // A single block is still there. A range of numbers may have changed.
  const blocks = isSingle ? [last] : await blocksOf(client, genuine, first, last);
  const readReceipts = async (): Promise<ChainLog[]> => {
    const isUnsure = isSingle && mayLackLogs(last, reading, escrows);
    const transactions = isUnsure ? transactionsOf(client, last.hash) : genuine;
    return logsOfTransactions(client, await transactions);
  };
  // Blocks that were read by their receipts are complete.
  const logs = way === 'receipts' ? reading.logs : await readReceipts();
  const lacking = lackingIn(genuine, logs, contracts);
  // An escrow may have been left out of the mints.
  if (lacking && way === 'addresses') escrows.rewindTo(0);
  if (lacking) return { lacking };
  const events = await eventsOf(client, genuine, blocks, logs);
  escrows.note(genuine, first.number, last.number);
  return { events, blocks };
}

/**
 * Reads the mints before a block that are not known yet, so that escrows can be asked for by address. The
 * newest ones are read block by block, as all logs are near the head.
 */
async function readMintsBefore(client: Chain, escrows: KnownEscrows, block: number): Promise<void> {
  const learnMints = async (): Promise<void> => undefined;
  const how = { way: 'mints', ahead: 0, byHash: true, isOfThisNode: false } as const;
  const wanted = { ...how, escrows, learnMints, byReceipts: new Map() };
  const read = async (from: number, to: number): Promise<DecodedLog[]> => {
    const [first, last] = await Promise.all([existingBlock(client, from), existingBlock(client, to)]);
    return client.agree(blocksIn(first, last), async (node) => {
      const { logs } = await readLogs(node, { ...wanted, first, last });
      // Some nodes answer with no logs where they have removed them.
      if (from === escrows.genesisBlock && !logs.some(({ blockNumber }) => blockNumber === from))
        throw firstLogMissing(from);
      const events = genuineOf(logs, escrows.contracts);
      return { value: events, names: namesOf(events) };
    });
  };
  await escrows.learnBefore(block, NEAR_HEAD, read);
}

function firstLogMissing(block: number): ChainError {
  const message = `The node gives no logs of the registry in block ${block}, in which it was created.`;
  return new ChainError('LOGS_REFUSED', message);
}

function namesOf(logs: readonly ChainLog[]): string[] {
  return nameLogs(logs).map(({ name }) => name.toLowerCase());
}

function blocksIn(first: Pick<ChainBlock, 'number'>, last: Pick<ChainBlock, 'number'>): object {
  return { fromBlock: toQuantity(first.number), toBlock: toQuantity(last.number) };
}

/** Reads a block from all its receipts. @throws ChainError RECEIPT_MISSING (retryable). */
export async function readByReceipts(
  { client, escrows }: RegistryReading,
  block: ChainBlock,
): Promise<RangeRead> {
  const logs = await logsOfBlocks(client, [block.hash]);
  const genuine = genuineOf(logs, escrows.contracts);
  return { events: await eventsOf(client, genuine, [block], logs), blocks: [block] };
}

/**
 * Whether the header says that the block may have logs of the registry, its factory or a title escrow, and
 * the answer has none of that address or topic. Within the filter's limits this is wrong about one of four
 * blocks at most. Escrows that were asked for by their addresses are searched for while they are few.
 *
 * An answer by number may be of a node that lacks the block, or had another one: it may lack logs unless the
 * header shows that it does not.
 */
function mayLackLogs(block: ChainBlock, { way, byHash, logs }: LogReading, escrows: KnownEscrows): boolean {
  if (block.isEmpty) return false;
  const ofBlock = logs.filter(({ blockHash }) => blockHash === block.hash);
  const known = new Set(
    ofBlock.flatMap(({ address, topics: [topic = ''] }) => [address, topic.toLowerCase()]),
  );
  const unseen = (words: readonly string[]): string[] => words.filter((word) => !known.has(word));
  const bloom = new Bloom(block);
  const { registry, titleEscrowFactory } = escrows.contracts;
  if (bloom.saysMuchOfAddresses && bloom.mayHave(unseen([registry, titleEscrowFactory]))) return true;
  if (!bloom.isPresent || !bloom.saysMuchOfTopics) return !byHash;
  if (way === 'topics') return bloom.mayHave(unseen(ESCROW_TOPICS));
  const few = escrows.few(block.number, FEW_ESCROWS);
  if (few === undefined) return !byHash && bloom.mayHave(ESCROW_TOPICS);
  return bloom.mayHave(ESCROW_TOPICS) && bloom.mayHave(unseen(few));
}

/**
 * All logs of the transactions, in order within each, and perhaps those of others in their blocks. They are
 * from the receipts, since a node has a receipt completely or not at all.
 *
 * Nodes index transactions by hash for about a year only (geth's `--history.transactions`). For a transaction
 * that the node does not find, all logs of its block are read.
 */
async function logsOfTransactions(client: Chain, wanted: readonly TransactionInBlock[]): Promise<ChainLog[]> {
  const transactions = [
    ...new Map(wanted.map((transaction) => [transactionIn(transaction), transaction])).values(),
  ];
  const receipts = await receiptLogsOf(client, transactions);
  const unknown = transactions.filter((transaction) => !receipts.has(transactionIn(transaction)));
  const unknownKeys = new Set(unknown.map(transactionIn));
  const blocks = [...new Set(unknown.map(({ blockHash }) => blockHash))];
  const logs = await pMap(blocks, (blockHash) => allLogsOf(client, blockHash), {
    concurrency: CONCURRENT_BLOCKS,
  });
  // These blocks have logs: an answer of none is of a node that lacks the block.
  const silent = blocks[logs.findIndex(({ length }) => length === 0)];
  for (const transaction of unknown) if (transaction.blockHash === silent) receiptMissing(transaction);
  const unindexedLogs = logs.flat().filter((log) => unknownKeys.has(transactionIn(log)));
  return [...receipts.values(), unindexedLogs].flat();
}

async function allLogsOf(client: Chain, blockHash: string): Promise<ChainLog[]> {
  return client.agree({ blockHash }, async (node) => {
    const logs = await logsOf(node, { blockHash });
    return { value: logs, names: namesOf(logs) };
  });
}

/** The first event that the transactions' own logs have, and the answer lacks. */
function lackingIn(
  genuine: readonly DecodedLog[],
  logs: readonly ChainLog[],
  contracts: RegistryContracts,
): ChainLog | undefined {
  const known = new Set(nameLogs(genuine).map(({ name }) => name));
  const others = nameLogs(logs).flatMap(({ log, name }) => (known.has(name) ? [] : log));
  return genuineOf(others, contracts)[0];
}

function leftOut({ index, blockNumber, transactionHash }: ChainLog): ChainError {
  return differing(
    `The node leaves log ${index} out of the logs of block ${blockNumber}, ` +
      `but the receipt of transaction ${transactionHash} has it.`,
  );
}

/**
 * Combines decoded logs with their blocks and their places, in chain order. A log is found in its transaction
 * by its content. Its index is its place in its block. If indexes contradict each other, the logs of the
 * whole block are counted instead, so that events are in the order of the chain.
 *
 * @param logs all logs of every transaction with a decoded log, in order within each transaction.
 */
async function eventsOf(
  client: Chain,
  decoded: readonly DecodedLog[],
  blocks: readonly ChainBlock[],
  logs: readonly ChainLog[],
): Promise<RegistryEvent[]> {
  const byNumber = new Map(blocks.map((block) => [block.number, block]));
  const names = nameLogs(decoded).map(({ name }) => name);
  const positions = new Map(nameLogs(logs).map(({ name, position }) => [name, position]));
  const events = completeMints(decoded).map((log, at): RegistryEvent => {
    const { type, tokenId, payload, blockNumber, blockHash, transactionHash } = log;
    const place = { blockNumber, blockHash, transactionHash, blockLogIndex: log.index };
    const logIndex = positions.get(names[at] ?? '') ?? withoutPlace(log);
    return { type, tokenId, payload, ...place, logIndex, blockTimestamp: timestampOf(byNumber, log) };
  });
  for (const blockHash of misnumbered(events)) {
    const places = await countLogs(client, blockHash);
    for (const [at, event] of events.entries())
      if (event.blockHash === blockHash)
        event.blockLogIndex = places.get(names[at] ?? '') ?? withoutPlace(event);
  }
  return events.sort(
    (left, right) => left.blockNumber - right.blockNumber || left.blockLogIndex - right.blockLogIndex,
  );
}

/** The place in its block of each log of a block, by its name, from all receipts. */
async function countLogs(client: Chain, blockHash: string): Promise<ReadonlyMap<string, number>> {
  const transactions = await transactionsOf(client, blockHash);
  const logs = await logsOfTransactions(client, transactions);
  const inOrder = transactions.flatMap(({ transactionHash: of }) =>
    logs.filter(({ transactionHash }) => transactionHash === of),
  );
  return new Map(nameLogs(inOrder).map(({ name }, place) => [name, place]));
}

/** The blocks in which the indexes of logs are not their places. */
function misnumbered(events: readonly RegistryEvent[]): ReadonlySet<string> {
  const wrong = events.filter(({ blockHash, transactionHash, logIndex, blockLogIndex }, at) => {
    const before = events[at - 1];
    // The place of the transaction's first log.
    const start = blockLogIndex - logIndex;
    if (start < 0 || blockLogIndex > HIGHEST_INDEX) return true;
    if (before?.blockHash !== blockHash) return false;
    const isSame = before.transactionHash === transactionHash;
    return isSame ? start !== before.blockLogIndex - before.logIndex : start <= before.blockLogIndex;
  });
  return new Set(wrong.map(({ blockHash }) => blockHash));
}

function withoutPlace({ transactionHash }: TransactionInBlock): never {
  throw differing(`The node gives other logs for transaction ${transactionHash} than for its block.`);
}

/**
 * Reads the blocks of the logs, and the first and the last block of the range. These two must not have
 * changed since the logs were read. Ascending.
 */
async function blocksOf(
  client: Chain,
  decoded: readonly DecodedLog[],
  first: ChainBlock,
  last: ChainBlock,
): Promise<ChainBlock[]> {
  const numbers = new Set([first.number, last.number, ...decoded.map(({ blockNumber }) => blockNumber)]);
  const ascending = [...numbers].sort((left, right) => left - right);
  const blocks = (await blocksAt(client, ascending)).flatMap((block) => block ?? []);
  if (blocks[0]?.hash !== first.hash) throw blockChanged(first.number);
  if (blocks.at(-1)?.hash !== last.hash) throw blockChanged(last.number);
  const hashes = new Set(blocks.map(({ hash }) => hash));
  const gone = decoded.find(({ blockHash }) => !hashes.has(blockHash));
  if (gone) throw blockChanged(gone.blockNumber);
  return blocks;
}

/**
 * The logs and the block were read in separate calls. If they are of different branches, the range is read
 * again.
 */
function timestampOf(blocks: ReadonlyMap<number, ChainBlock>, { blockNumber, blockHash }: ChainLog): number {
  const block = blocks.get(blockNumber);
  if (block?.hash === blockHash) return block.timestamp;
  throw blockChanged(blockNumber);
}

function differing(message: string): ChainError {
  return new ChainError('ANSWERS_DIFFER', message);
}
