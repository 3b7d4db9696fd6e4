import { isDeepStrictEqual } from 'node:util';
import { isError, keccak256 } from 'ethers';
import pMap from 'p-map';
import {
  blockChanged,
  blocksAt,
  isOfSeveralNodes,
  logsOf,
  nameLogs,
  transactionsOf,
  type ChainBlock,
  type ChainLog,
  type LogFilter,
  type TransactionInBlock,
} from '../chain/read-chain';
import { receiptLogsOf, transactionIn } from '../chain/read-receipts';
import type { Chain } from '../chain/chain';
import { ChainError, codeOf } from '../base/errors';
import { isBlockAbsent, isParameterRefused, isThrottled, nodeErrorOf } from '../chain/node-errors';
import { type RegistryContracts } from '../registry/registry-contracts';
import {
  ESCROW_TOPICS,
  REGISTRY_AND_FACTORY_TOPICS,
  completeMints,
  genuineOf,
  type DecodedLog,
} from '../registry/decode-log';
import type { RegistryEvent } from '../registry/registry-event';

/** The contents of a range of blocks. */
export interface RangeRead {
  events: RegistryEvent[];
  /** The blocks with events, the first and the last one. Ascending. */
  blocks: ChainBlock[];
}

/** Maximum number of readings that differ before the error is thrown. */
const READINGS = 3;
/** Blocks whose logs are all requested at the same time. */
const CONCURRENT_BLOCKS = 8;
/** The highest index that the database holds. */
const HIGHEST_INDEX = 2 ** 31 - 1;
/**
 * A header's Bloom filter has 2,048 bits. With half of them set, it says little about the two addresses, and
 * with a quarter of them about the nine topics of title escrows.
 */
const MOST_BITS_FOR_ADDRESSES = 1_024;
const MOST_BITS_FOR_TOPICS = 512;
/** No block has this hash. */
const UNKNOWN_BLOCK = `0x${'0'.repeat(63)}1`;

/**
 * Reads all genuine events of the blocks `first` to `last`, in chain order. It makes two `eth_getLogs`
 * queries for any number of tokens: title escrow events carry their registry unindexed, so they are selected
 * by topic and checked here. It also makes one call per block with events, for the block's time, and at most
 * one per transaction with events, for all of its logs. A single block is requested by hash: a node that does
 * not have the block fails then, instead of answering with no logs. A node that does not fail is asked by
 * number, unless the block's header says which logs it may have.
 *
 * @throws ChainError ANSWERS_DIFFER (retryable) if the node contradicts itself, as when a receipt has an
 *   event that the logs of its block lack.
 */
export async function readRange(
  client: Chain,
  contracts: RegistryContracts,
  first: ChainBlock,
  last: ChainBlock,
): Promise<RangeRead> {
  const isSingle = first.number === last.number;
  if (isSingle && (bloomOf(last).saysMuch || (await refusesUnknownBlocks(client)))) {
    const read = await readLogs(client, contracts, first, last, { blockHash: last.hash }).catch(
      (error: unknown) => {
        // Some nodes know no logs of a block's hash.
        if (isParameterRefused(error)) return undefined;
        throw error;
      },
    );
    if (read && !('lacking' in read)) return read;
  }
  const read = await readLogs(client, contracts, first, last, {
    fromBlock: first.number,
    toBlock: last.number,
  });
  if ('lacking' in read) throw leftOut(read.lacking);
  return read;
}

/** `lacking`: an event that a receipt has, and the answer to `eth_getLogs` does not. */
async function readLogs(
  client: Chain,
  contracts: RegistryContracts,
  first: ChainBlock,
  last: ChainBlock,
  blocks: { fromBlock: number; toBlock: number } | { blockHash: string },
): Promise<RangeRead | { lacking: ChainLog }> {
  const [own, escrows] = await Promise.all([
    readTwice(client, {
      ...blocks,
      address: [contracts.registry, contracts.titleEscrowFactory],
      topics: REGISTRY_AND_FACTORY_TOPICS,
    }),
    readTwice(client, { ...blocks, topics: ESCROW_TOPICS }),
  ]);
  const genuine = genuineOf([...own, ...escrows], contracts);
  // The logs of a block's hash are of that block. A range of numbers may have changed.
  const read = 'blockHash' in blocks ? [last] : await blocksOf(client, genuine, first, last);
  const wanted =
    first.number === last.number && mayLackLogs(last, [...own, ...escrows], contracts)
      ? await transactionsIn(client, last.hash)
      : genuine.map(({ log }) => log);
  const logs = await logsOfTransactions(client, wanted);
  const lacking = lackingIn(genuine, logs, contracts);
  return lacking ? { lacking } : { events: await eventsOf(client, genuine, read, logs), blocks: read };
}

/**
 * Reads a block from the receipts of all its transactions. It is used for blocks whose logs the provider
 * refuses because too many match: anybody can fill a block with logs that look like those of title escrows.
 *
 * @throws ChainError RECEIPT_MISSING (retryable)
 */
export async function readByReceipts(
  client: Chain,
  contracts: RegistryContracts,
  block: ChainBlock,
): Promise<RangeRead> {
  const transactions = await transactionsIn(client, block.hash);
  const receipts = await receiptLogsOf(client, transactions);
  const logs = transactions.flatMap((one) => receipts.get(transactionIn(one)) ?? missing(one));
  return { events: await eventsOf(client, genuineOf(logs, contracts), [block], logs), blocks: [block] };
}

function missing({ transactionHash }: TransactionInBlock): never {
  const message =
    `The node does not have the receipt of transaction ${transactionHash}, ` +
    'and does not give all logs of its block. If the block is old, ' +
    'use a node that keeps its whole index of transactions (geth: --history.transactions 0).';
  throw new ChainError('RECEIPT_MISSING', message, { retryable: true });
}

/**
 * Reads the matching logs twice and compares the answers. Providers behind a load balancer sometimes omit
 * logs, and an omitted log would never be read. With several nodes, the second answer is another node's.
 */
async function readTwice(client: Chain, filter: LogFilter): Promise<ChainLog[]> {
  if (isOfSeveralNodes(client)) return logsOf(client, filter);
  for (let reading = 1; reading <= READINGS; reading++) {
    const [logs, again] = await Promise.all([logsOf(client, filter), logsOf(client, filter)]);
    if (isDeepStrictEqual(logs, again)) return logs;
  }
  throw differing('The node gives different logs each time it is asked for the same blocks.');
}

/**
 * Whether the header says that the block may have logs of the registry, its factory or a title escrow, and
 * the answer has none of that address or topic. The Bloom filter never misses a log (Ethereum Yellow Paper,
 * 4.4.1), and within its limits it is wrong about one of four blocks at most.
 */
function mayLackLogs(block: ChainBlock, found: readonly ChainLog[], contracts: RegistryContracts): boolean {
  const { bloom, bits } = bloomOf(block);
  const known = new Set(found.flatMap(({ address, topics: [topic = ''] }) => [address, topic.toLowerCase()]));
  const mayHave = (words: readonly string[], most: number): boolean =>
    bits < most && words.some((word) => !known.has(word) && isInBloom(bloom, word));
  const { registry, titleEscrowFactory } = contracts;
  return (
    mayHave([registry, titleEscrowFactory], MOST_BITS_FOR_ADDRESSES) ||
    mayHave(ESCROW_TOPICS, MOST_BITS_FOR_TOPICS)
  );
}

/** `saysMuch`: it shows whether a block has a log of interest. Some nodes give a filter of zeroes always. */
function bloomOf({ logsBloom }: ChainBlock): { bloom: Buffer; bits: number; saysMuch: boolean } {
  const bloom = Buffer.from(logsBloom.slice(2), 'hex');
  const bits = bloom.reduce((sum, byte) => sum + byte.toString(2).replaceAll('0', '').length, 0);
  return { bloom, bits, saysMuch: bits > 0 && bits < MOST_BITS_FOR_TOPICS };
}

function isInBloom(bloom: Buffer, word: string): boolean {
  const hash = Buffer.from(keccak256(word).slice(2), 'hex');
  return [0, 2, 4].every((pair) => {
    const bit = hash.readUInt16BE(pair) % 2_048;
    return ((bloom.at(-1 - Math.floor(bit / 8)) ?? 0) >> (bit % 8)) % 2 === 1;
  });
}

/**
 * Whether the node refuses to give the logs of a block that it does not have, as EIP-234 demands. It is asked
 * until its answer is clear. If a node does not refuse, an answer without logs may mean that it is behind.
 */
export async function refusesUnknownBlocks(client: Chain): Promise<boolean> {
  const { learned } = client;
  if (learned.refusesUnknownBlocks !== undefined) return learned.refusesUnknownBlocks;
  try {
    await logsOf(client, { blockHash: UNKNOWN_BLOCK, topics: ESCROW_TOPICS });
    learned.refusesUnknownBlocks = false;
    return false;
  } catch (error) {
    const isAnswer = nodeErrorOf(error) !== undefined || REFUSALS.includes(codeOf(error) ?? '');
    if (isThrottled(error) || !(isAnswer || isError(error, 'SERVER_ERROR'))) throw error;
    // Of nodes that differ, one refuses. Any other error may pass, or be of a gateway.
    if (isBlockAbsent(error) || isParameterRefused(error) || codeOf(error) === 'NODES_DIFFER')
      learned.refusesUnknownBlocks = true;
    return true;
  }
}

const REFUSALS = ['NODES_DIFFER', 'ANSWER_MALFORMED'];

async function transactionsIn(client: Chain, blockHash: string): Promise<TransactionInBlock[]> {
  const hashes = await transactionsOf(client, blockHash);
  return hashes.map((transactionHash) => ({ transactionHash, blockHash }));
}

/**
 * All logs of the transactions, in order within each, and perhaps those of others in their blocks. They are
 * from the receipts, since a node has a receipt completely or not at all.
 *
 * Nodes index transactions by hash for about a year only (geth's `--history.transactions`). For a transaction
 * that the node does not find, all logs of its block are read.
 */
async function logsOfTransactions(client: Chain, wanted: readonly TransactionInBlock[]): Promise<ChainLog[]> {
  const transactions = [...new Map(wanted.map((one) => [transactionIn(one), one])).values()];
  const receipts = await receiptLogsOf(client, transactions);
  const unknown = transactions.filter((one) => !receipts.has(transactionIn(one)));
  const unknownKeys = new Set(unknown.map(transactionIn));
  const blocks = [...new Set(unknown.map(({ blockHash }) => blockHash))];
  const logs = await pMap(blocks, (blockHash) => readTwice(client, { blockHash }), {
    concurrency: CONCURRENT_BLOCKS,
  });
  // These blocks have logs: an answer of none is of a node that lacks the block.
  const silent = blocks[logs.findIndex(({ length }) => length === 0)];
  for (const one of unknown) if (one.blockHash === silent) missing(one);
  const found = logs.flat().filter((log) => unknownKeys.has(transactionIn(log)));
  return [...receipts.values(), found].flat();
}

/** The first event that the transactions' own logs have, and the answer lacks. */
function lackingIn(
  genuine: readonly DecodedLog[],
  logs: readonly ChainLog[],
  contracts: RegistryContracts,
): ChainLog | undefined {
  const known = new Set(nameLogs(genuine.map(({ log }) => log)).map(({ name }) => name));
  const others = nameLogs(logs).flatMap(({ log, name }) => (known.has(name) ? [] : log));
  return genuineOf(others, contracts)[0]?.log;
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
  const names = nameLogs(decoded.map(({ log }) => log)).map(({ name }) => name);
  const positions = new Map(nameLogs(logs).map(({ name, position }) => [name, position]));
  const events = completeMints(decoded).map(({ type, tokenId, payload, log }, at) => ({
    type,
    tokenId,
    payload,
    blockNumber: log.blockNumber,
    blockHash: log.blockHash,
    blockTimestamp: timestampOf(byNumber, log),
    transactionHash: log.transactionHash,
    logIndex: positions.get(names[at] ?? '') ?? withoutPlace(log),
    blockLogIndex: log.index,
  }));
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
  const transactions = await transactionsIn(client, blockHash);
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
  const numbers = new Set([first.number, last.number, ...decoded.map(({ log }) => log.blockNumber)]);
  const ascending = [...numbers].sort((left, right) => left - right);
  const blocks = (await blocksAt(client, ascending)).flatMap((block) => block ?? []);
  if (blocks[0]?.hash !== first.hash) throw blockChanged(first.number);
  if (blocks.at(-1)?.hash !== last.hash) throw blockChanged(last.number);
  const hashes = new Set(blocks.map(({ hash }) => hash));
  const gone = decoded.find(({ log }) => !hashes.has(log.blockHash));
  if (gone) throw blockChanged(gone.log.blockNumber);
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
  return new ChainError('ANSWERS_DIFFER', message, { retryable: true });
}
