import type { SeededRandom } from '../seeded-random';
import type { Answerer, RpcAnswer } from './rpc-proxy';

/**
 * How a node counts its logs: through the block, as it should be, through each transaction, through each
 * answer, or not at all.
 */
export const NUMBERINGS = ['block', 'transaction', 'answer', 'none'] as const;
export type Numbering = (typeof NUMBERINGS)[number];

/** How a node counts in the answers to `eth_getLogs`, and in receipts. */
export interface Counting {
  logs: Numbering;
  receipts: Numbering;
}

/** Half of all nodes count through the block. The others' indexes are still those of their transactions. */
export function randomCounting(random: SeededRandom): Counting {
  const pick = (): Numbering => random.pick(['block', 'transaction'] as const);
  return random.chance(0.5) ? { logs: 'block', receipts: 'block' } : { logs: pick(), receipts: pick() };
}

interface Log {
  logIndex: string;
  transactionHash: string;
  blockNumber: string;
  blockHash: string;
}

interface Receipt {
  transactionHash: string;
  logs: Log[];
}

/** Asks the node, which counts through the block. */
export type Ask = (method: string, params: readonly unknown[]) => Promise<RpcAnswer>;

/** Numbers the logs in an answer as another node does, which may count in receipts otherwise. */
export async function renumber(
  method: string,
  answer: RpcAnswer,
  numbering: Counting,
  ask: Ask,
): Promise<RpcAnswer> {
  if ('error' in answer || answer.result === null) return answer;
  switch (method) {
    case 'eth_getLogs':
      return { result: await renumberLogs(answer.result as Log[], numbering.logs, ask) };
    case 'eth_getTransactionReceipt':
      return { result: await renumberReceipt(answer.result as Receipt, numbering.receipts, ask) };
    case 'eth_getBlockReceipts': {
      const receipts = (answer.result as Receipt[]).map((one) =>
        renumberReceipt(one, numbering.receipts, ask),
      );
      return { result: await Promise.all(receipts) };
    }
    default:
      return answer;
  }
}

async function renumberReceipt(receipt: Receipt, numbering: Numbering, ask: Ask): Promise<Receipt> {
  return { ...receipt, logs: await renumberLogs(receipt.logs, numbering, ask) };
}

async function renumberLogs(logs: readonly Log[], numbering: Numbering, ask: Ask): Promise<Log[]> {
  const starts = new Map<string, number>();
  for (const { transactionHash } of numbering === 'transaction' ? logs : []) {
    if (starts.has(transactionHash)) continue;
    const answer = await ask('eth_getTransactionReceipt', [transactionHash]);
    const receipt = ('result' in answer ? answer.result : null) as Receipt | null;
    starts.set(transactionHash, Number(receipt?.logs[0]?.logIndex ?? 0));
  }
  return logs.map((log, position) => {
    const index = {
      block: Number(log.logIndex),
      transaction: Number(log.logIndex) - (starts.get(log.transactionHash) ?? 0),
      answer: position,
      none: 0,
    }[numbering];
    return { ...log, logIndex: `0x${index.toString(16)}` };
  });
}

/** A log of another block with the same number, which the node says a reorganisation removed, or does not. */
export function ofRemovedBlock<T extends object>(log: T, isMarked: boolean): T {
  return { ...log, blockHash: `0x${'de'.repeat(32)}`, ...(isMarked && { removed: true }) };
}

/** Forwards calls of any method through a proxy's node. */
export function asking(nodeUrl: string): Ask {
  return async (method, params) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const headers = { 'Content-Type': 'application/json' };
    return (await (await fetch(nodeUrl, { method: 'POST', headers, body })).json()) as RpcAnswer;
  };
}

/**
 * Answers as a node that counts logs in its own way, and gives the logs of blocks that a reorganisation
 * removed in the place of which it has others: marked as removed, or in ranges also without a mark.
 */
export function unusualLogs(
  nodeUrl: string,
  random: SeededRandom,
): (...call: Parameters<Answerer>) => Promise<RpcAnswer> {
  const ask = asking(nodeUrl);
  const counting = randomCounting(random);
  const [givesRemoved, isMarked] = [random.chance(0.5), random.chance(0.7)];
  /** All logs that were given, by the rest of the filter. */
  const given = new Map<string, Map<string, Log>>();
  const removed = async (filter: Filter, all: ReadonlyMap<string, Log>): Promise<Log[]> => {
    const { blockHash, fromBlock, toBlock } = filter;
    const block = blockHash === undefined ? undefined : await ask('eth_getBlockByHash', [blockHash, false]);
    const { number } = ((block && 'result' in block && block.result) || {}) as { number?: string };
    const [first, last] = [Number(fromBlock ?? number), Number(toBlock ?? number)];
    const found = [...all.values()].filter(
      (log) => Number(log.blockNumber) >= first && Number(log.blockNumber) <= last,
    );
    const hashes = new Map<string, unknown>();
    for (const { blockNumber } of found) {
      const present = await ask('eth_getBlockByNumber', [blockNumber, false]);
      hashes.set(blockNumber, 'result' in present && (present.result as { hash?: string } | null)?.hash);
    }
    return found.filter((log) => hashes.get(log.blockNumber) !== log.blockHash);
  };
  return async (method, params, forward) => {
    const answer = await forward();
    const renumbered = await renumber(method, answer, counting, ask);
    if (!givesRemoved || method !== 'eth_getLogs' || 'error' in renumbered) return renumbered;
    const filter = params[0] as Filter;
    const key = JSON.stringify([filter.address, filter.topics]);
    const all = given.get(key) ?? new Map<string, Log>();
    given.set(key, all);
    const logs = renumbered.result as Log[];
    const isRange = filter.blockHash === undefined && filter.fromBlock !== filter.toBlock;
    const gone = isMarked || isRange ? await removed(filter, all) : [];
    for (const log of logs) all.set(`${log.blockHash}:${log.transactionHash}:${log.logIndex}`, log);
    return { result: [...gone.map((log) => ({ ...log, ...(isMarked && { removed: true }) })), ...logs] };
  };
}

interface Filter {
  address?: unknown;
  topics?: unknown;
  blockHash?: string;
  fromBlock?: string;
  toBlock?: string;
}
