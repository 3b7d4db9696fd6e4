import { isError, ZeroHash } from 'ethers';
import pMap from 'p-map';
import { ChainError, codeOf } from '../base/errors';
import { Bloom } from '../chain/bloom';
import {
  AnswerTooLargeError,
  isAnswer,
  isBlockAbsent,
  isDenied,
  isRefusal,
  problemOf,
  RangeTooWideError,
} from '../chain/node-errors';
import {
  blockChanged,
  blocksAt,
  existing,
  existingBlock,
  logsOf,
  refusesUnknownBlocks,
  type ChainBlock,
  type ChainLog,
  type LogFilter,
} from '../chain/read-chain';
import { logsOfBlocks } from '../chain/read-receipts';
import type { Rpc } from '../chain/node';
import { ESCROW_TOPICS, genuineOf, REGISTRY_AND_FACTORY_TOPICS } from '../registry/decode-log';
import type { KnownEscrows } from './known-escrows';
import { NodeLimits, type Kind, type LearnedLimit } from './node-limits';

// The ways to read the logs of a registry, its factory and its title escrows from one node:
//
// - by topics: one query by the addresses of registry and factory, and one by the topics of title escrows.
//   The cost is the same for any number of tokens.
// - by addresses: the title escrows are asked for by their addresses, in portions. For nodes that refuse logs
//   without an address, or allow fewer blocks for them.
// - by receipts: of the blocks whose Bloom filter may have such a log. Every node gives them.
//
// The cheapest way is taken, by the limits that the node was found to have.

/** Queries of one reading under way. */
const CONCURRENT_QUERIES = 4;
/** A timeout takes half a minute: the next query asks for an eighth. */
const PART_AFTER_TIMEOUT = 1 / 8;
/** A node that denies all queries of a kind for so long, as too many or not allowed, gives none. */
const LONGEST_DENIED_MS = 10_000;
/** A range that a node gives only in more parts than this is read in several readings. */
const MOST_PARTS = 25;
/** Header, hashes of the transactions, and their receipts. */
const CALLS_OF_RECEIPTS = 3;
/** Mints and burns are read by two filters. */
const FILTERS_OF_MINTS = 2;
/** The cost of reading the mints first is borne by so many blocks. */
const BLOCKS_TO_COME = 10_000;
/** A block's Bloom filter has too many of more escrows by chance. */
export const FEW_ESCROWS = 16;

/** The blocks to read. */
export interface LogsWanted {
  escrows: KnownEscrows;
  first: ChainBlock;
  last: ChainBlock;
  /** The way to read them; undefined: the cheapest. */
  way?: 'mints';
  /** How many blocks the chain has after them. */
  ahead: number;
  /** Whether a single block may be asked for by its hash (EIP-234). */
  byHash: boolean;
  /** Whether the headers of `first` and `last` were given by this node, or may be of another one. */
  isOfThisNode: boolean;
  /** Reads the mints before the first block, for the way by addresses. */
  learnMints: () => Promise<void>;
  /** A node has a receipt completely or not at all: both readings of one node share theirs. */
  byReceipts: Map<Rpc, Promise<ChainLog[]>>;
  /** Called with each refusal. */
  slowedBy?: ((error: unknown) => void) | undefined;
}

/** `mints`: only the logs by which mints and burns are known. */
export type Way = 'topics' | 'addresses' | 'receipts' | 'mints';

/** Logs of a node, not all genuine. */
export interface LogReading {
  way: Way;
  /** Whether the node was asked by a block's hash. */
  byHash: boolean;
  logs: ChainLog[];
}

/** A node refused a query. Its limits say by now which way, or how many blocks, to try next. */
class Refused extends Error {}

/**
 * Reads the logs of a registry, its factory and its escrows from one node, by the cheapest way that the node
 * allows. A single block is still on the chain afterwards.
 *
 * @throws RangeTooWideError if the range must be read in parts; ChainError LOGS_REFUSED if the node refuses
 *   every way, BLOCK_CHANGED, BLOCK_MISSING, RECEIPT_MISSING (all retryable); any error of the node that is
 *   no refusal.
 */
export async function readLogs(node: Rpc, wanted: LogsWanted): Promise<LogReading> {
  const { first, last } = wanted;
  const limits = NodeLimits.of(node);
  for (;;) {
    const way = wanted.way ?? cheapestWay(limits, wanted);
    const isSingle = first.number === last.number && way !== 'receipts';
    // By addresses, the header shows a log that is left out only while the escrows are few. The header of
    // another node shows nothing: one node alone must not decide how the others are asked.
    const isChecked =
      wanted.isOfThisNode && (way === 'topics' || wanted.escrows.few(last.number, FEW_ESCROWS) !== undefined);
    const byHash = isSingle && wanted.byHash && (await mayAskByHash(node, limits, last, isChecked));
    try {
      const logs = await WAYS[way]({ ...wanted, node, limits, byHash });
      const mayHaveChanged = !byHash && (isSingle || way === 'mints');
      if (mayHaveChanged && (await existingBlock(node, last.number)).hash !== last.hash)
        throw blockChanged(last.number);
      return { way, byHash, logs };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (way === 'mints' && limits.mints.isClosed) throw refusedAll(limits, error.cause);
      if (error.cause !== undefined) wanted.slowedBy?.(changeOfWay(error.cause));
    }
  }
}

function changeOfWay(cause: unknown): ChainError {
  const message = `To a query for logs the node ${problemOf(cause)}. It is asked in another way.`;
  const remedy =
    'No event is lost. `npx tdoc check` says how events are read; another node (RPC_URL) may allow more.';
  return new ChainError('NODE_FAILED', message, { remedy, cause });
}

/** The way that makes the fewest calls for these blocks, and those to come. */
function cheapestWay(limits: NodeLimits, { escrows, first, last, ahead }: LogsWanted): Way {
  const blocks = last.number - first.number + 1;
  const queries = (amount: number, limit: LearnedLimit): number =>
    amount === 0 ? 0 : Math.ceil(amount / limit.value);
  const parts = (...kinds: Kind[]): number => Math.max(...kinds.map((kind) => queries(blocks, limits[kind])));
  const portions = Math.max(1, queries(escrows.of(first.number, last.number).length, limits.addresses));
  const learning = FILTERS_OF_MINTS * queries(escrows.missingBefore(first.number), limits.mints);
  const share = blocks / (blocks + ahead + BLOCKS_TO_COME);
  const ways: { way: Way; parts: number; calls: number }[] = [
    { way: 'receipts', parts: blocks, calls: blocks * CALLS_OF_RECEIPTS },
    {
      way: 'addresses',
      parts: parts('own', 'escrows'),
      calls: parts('own') + portions * parts('escrows') + learning * share,
    },
    { way: 'topics', parts: parts('own', 'topics'), calls: parts('own') + parts('topics') },
  ];
  const cheapest = ways.reduce((one, other) => (other.calls <= one.calls ? other : one));
  if (cheapest.parts > MOST_PARTS && blocks > 1)
    throw new RangeTooWideError('the node gives the range only in many parts');
  return cheapest.way;
}

/** Each way with what it reads from. */
interface Reading extends LogsWanted {
  node: Rpc;
  limits: NodeLimits;
}

const WAYS: Record<Way, (reading: Reading) => Promise<ChainLog[]>> = {
  async topics(reading) {
    const [own, escrows] = await Promise.all([
      query(reading, 'own', ownFilters(reading)),
      query(reading, 'topics', [{ topics: ESCROW_TOPICS }]),
    ]);
    return [...own, ...escrows];
  },

  async addresses(reading) {
    const { escrows, first, last, limits, learnMints } = reading;
    await learnMints().catch((error: unknown) => {
      if (!isRefusal(error) && !isBlockAbsent(error) && codeOf(error) !== 'LOGS_REFUSED') throw error;
      // The mints are not to be had, as where old blocks were removed.
      limits.escrows.refused(1);
      throw new Refused('the node refuses the mints', { cause: error });
    });
    const own = await query(reading, 'own', ownFilters(reading));
    const minted = genuineOf(own, escrows.contracts).flatMap(({ type, payload }) =>
      type === 'escrow_created' ? String(payload.escrowAddress) : [],
    );
    const all = [...new Set([...escrows.of(first.number, last.number), ...minted])];
    const atOnce = Math.max(1, limits.addresses.value);
    const portions = Array.from({ length: Math.ceil(all.length / atOnce) }, (_, index) => ({
      address: all.slice(index * atOnce, (index + 1) * atOnce),
      topics: ESCROW_TOPICS,
    }));
    return [...own, ...(await query(reading, 'escrows', portions))];
  },

  mints: (reading) => query(reading, 'mints', reading.escrows.filters(reading.first.number)),

  async receipts(reading) {
    const { node, limits, escrows, byReceipts } = reading;
    const read = async (): Promise<ChainLog[]> => {
      const headers = await headersOf(reading);
      const hashes = headers.flatMap((header) => (mayHaveLogs(header, escrows) ? header.hash : []));
      return logsOfBlocks(node, hashes);
    };
    const logs = byReceipts.get(node) ?? read();
    byReceipts.set(node, logs);
    return logs.catch((error: unknown) => {
      throw isRefusal(error) ? refusedAll(limits, error) : error;
    });
  },
};

/** Selects the logs of the registry itself, and of its factory. */
function ownFilters({ escrows: { contracts } }: Reading): Filter[] {
  const address = [contracts.registry, contracts.titleEscrowFactory];
  return [{ address, topics: REGISTRY_AND_FACTORY_TOPICS }];
}

type Filter = Omit<LogFilter, 'fromBlock' | 'toBlock' | 'blockHash'>;

/** The logs of each filter, in as many queries as the node's limits demand. */
async function query(
  { node, limits, first, last, byHash }: Reading,
  kind: Kind,
  filters: readonly Filter[],
): Promise<ChainLog[]> {
  const width = Math.max(1, limits[kind].value);
  const starts = Array.from(
    { length: Math.ceil((last.number - first.number + 1) / width) },
    (_, part) => first.number + part * width,
  );
  const queries = filters.flatMap((filter) => starts.map((fromBlock) => ({ filter, fromBlock })));
  const logs = await pMap(
    queries,
    async ({ filter, fromBlock }) => {
      const toBlock = Math.min(last.number, fromBlock + width - 1);
      const addresses = filter.address?.length ?? 0;
      try {
        const logs = byHash
          ? await logsOfHash(node, limits, filter, last)
          : await twiceIfRefused(() => logsOf(node, { ...filter, fromBlock, toBlock }));
        limits[kind].allowed(toBlock - fromBlock + 1);
        limits.deniedSince.delete(kind);
        if (kind === 'escrows') limits.addresses.allowed(addresses);
        return logs;
      } catch (error) {
        const query = { kind, addresses, fromBlock, blocks: toBlock - fromBlock + 1 };
        throw learn(limits, query, error, node.time.elapsed());
      }
    },
    { concurrency: CONCURRENT_QUERIES },
  );
  return logs.flat();
}

/** A refusal may be of one of several nodes behind a URL. */
async function twiceIfRefused<T>(ask: () => Promise<T>): Promise<T> {
  return ask().catch((error: unknown) => {
    if (!isRefusal(error) || !isAnswer(error) || error instanceof AnswerTooLargeError) throw error;
    return ask();
  });
}

/**
 * The logs of a block by its hash. A node that refuses, or gives those of another block, is asked by number
 * from now on.
 */
async function logsOfHash(
  node: Rpc,
  limits: NodeLimits,
  filter: Filter,
  { number, hash }: ChainBlock,
): Promise<ChainLog[]> {
  try {
    const logs = await twiceIfRefused(() => logsOf(node, { ...filter, blockHash: hash }));
    if (logs.every(({ blockHash }) => blockHash === hash)) return logs;
  } catch (error) {
    if (!isRefusal(error) || !isAnswer(error) || isBlockAbsent(error)) throw error;
    await logsOf(node, { ...filter, fromBlock: number, toBlock: number });
  }
  limits.hashes.refused(1);
  throw new Refused();
}

/**
 * Whether a node may be asked by a block's hash: one that lacks the block refuses then, instead of answering
 * with no logs. A node that does not refuse may be asked if the header says which logs the block may have.
 *
 * @param isChecked whether the answer is compared with the header.
 */
async function mayAskByHash(
  node: Rpc,
  { hashes }: NodeLimits,
  block: ChainBlock,
  isChecked: boolean,
): Promise<boolean> {
  if (hashes.isClosed) return false;
  const bloom = new Bloom(block);
  if (isChecked && bloom.isPresent && bloom.saysMuchOfTopics) return true;
  return refusesUnknownBlocks(node).catch((error: unknown) => {
    if (!isRefusal(error) && !isDenied(error)) throw error;
    return false;
  });
}

/** A query, by what a node may limit. */
interface Query {
  kind: Kind;
  fromBlock: number;
  blocks: number;
  addresses: number;
}

/** Learns from an error of a query. Returns what to throw. */
function learn(
  limits: NodeLimits,
  { kind, blocks, addresses, fromBlock }: Query,
  error: unknown,
  now: number,
): unknown {
  if (error instanceof Refused || (blocks === 1 && isBlockAbsent(error))) return error;
  const refused = new Refused('the node refuses a query', { cause: error });
  if (isDenied(error)) {
    const since = limits.deniedSince.get(kind) ?? now;
    limits.deniedSince.set(kind, since);
    if (now - since < LONGEST_DENIED_MS) return error;
    limits[kind].refused(1);
  } else if (!isRefusal(error)) {
    return error;
  }
  limits.lastRefusal = problemOf(error);
  if (isDenied(error)) return refused;
  const part = isError(error, 'TIMEOUT') ? PART_AFTER_TIMEOUT : undefined;
  const isOfNode = isAnswer(error);
  const isRepeated = limits.failed.get(kind) === fromBlock;
  if (addresses > 1 && kind === 'escrows' && limits.own.allows(blocks))
    limits.addresses.refused(addresses, part);
  else if (blocks > 1 || isOfNode || isRepeated) limits[kind].refused(blocks, part);
  else limits.failed.set(kind, fromBlock);
  return isOfNode ? refused : error;
}

/**
 * The headers of the blocks as the node gives them: the hash of a block that two nodes have says nothing
 * about the filter and the transactions that one of them shows.
 */
async function headersOf({ node, first, last, isOfThisNode }: Reading): Promise<ChainBlock[]> {
  const count = last.number - first.number + 1;
  const numbers = Array.from({ length: count }, (_, at) => first.number + at);
  const blocks = new Map((isOfThisNode ? [first, last] : []).map((block) => [block.number, block]));
  const missing = numbers.filter((number) => !blocks.has(number));
  for (const [at, block] of (await blocksAt(node, missing)).entries())
    if (block !== undefined) blocks.set(missing[at] ?? NaN, block);
  const headers = numbers.map((number) => existing(number, blocks.get(number)));
  for (const [at, { number, hash, parentHash }] of headers.entries()) {
    const agreed = [first, last].find((block) => block.number === number);
    const isLinked = at === 0 || parentHash === headers[at - 1]?.hash || parentHash === ZeroHash;
    if (!isLinked || (agreed !== undefined && agreed.hash !== hash)) throw blockChanged(number);
  }
  return headers;
}

/** Whether the header says that a block may have a log of the registry, its factory or one of its escrows. */
function mayHaveLogs(header: ChainBlock, escrows: KnownEscrows): boolean {
  if (header.isEmpty) return false;
  const bloom = new Bloom(header);
  if (!bloom.isPresent) return true;
  const { registry, titleEscrowFactory } = escrows.contracts;
  if (bloom.mayHave([registry, titleEscrowFactory])) return true;
  const few = escrows.few(header.number, FEW_ESCROWS);
  return bloom.mayHave(ESCROW_TOPICS) && (few === undefined || bloom.mayHave(few));
}

function refusedAll(limits: NodeLimits, cause: unknown): ChainError {
  // They may be refused for another reason than what was asked for.
  for (const kind of ['own', 'topics', 'escrows', 'mints'] as const) limits[kind].open();
  const remedy = 'Set RPC_URL to another node: docs/networks.md says which are known to give logs.';
  const { lastRefusal = problemOf(cause) } = limits;
  const message = `To logs the node ${lastRefusal}. To other ways it ${problemOf(cause)}. ${remedy}`;
  return new ChainError('LOGS_REFUSED', message, { remedy, cause });
}
