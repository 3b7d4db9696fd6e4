import { toQuantity } from 'ethers';
import pMap from 'p-map';
import { ChainError } from '../base/errors';
import { malformed, isBlockAbsent, isThrottled } from './node-errors';
import type { Rpc } from './node';
import {
  logsOf,
  parseLogs,
  textOf,
  transactionsOf,
  type ChainLog,
  type TransactionInBlock,
} from './read-chain';

/** Names a transaction in a block. */
export function transactionIn({ transactionHash, blockHash }: TransactionInBlock): string {
  return `${blockHash}:${transactionHash}`;
}

/**
 * The logs of transactions from their receipts, in order within each, by `transactionIn`. A transaction is
 * missing if the node does not know its hash. Each transaction must be in its block. If many of a block are
 * wanted, and the node gives the receipts of whole blocks, all transactions of the block are in the result.
 *
 * @throws ChainError BLOCK_CHANGED (retryable) when a transaction moved to another block.
 */
export async function receiptLogsOf(
  client: Rpc,
  transactions: readonly TransactionInBlock[],
): Promise<ReadonlyMap<string, ChainLog[]>> {
  const byTransaction = new Map<string, ChainLog[]>();
  const wanted = new Map<string, number>();
  for (const { blockHash } of transactions) wanted.set(blockHash, (wanted.get(blockHash) ?? 0) + 1);
  const busy = [...wanted.keys()].filter((blockHash) => (wanted.get(blockHash) ?? 0) >= FEWEST_OF_A_BLOCK);
  const read = async (blockHash: string): Promise<void> => {
    const receipts = await blockReceiptsOf(client, blockHash, (all) => logsOfBlock(all, blockHash));
    for (const [key, logs] of receipts ?? []) byTransaction.set(key, logs);
  };
  await pMap(busy, read, { concurrency: CONCURRENT_BLOCKS });
  const remaining = transactions.filter((transaction) => !byTransaction.has(transactionIn(transaction)));
  const method = 'eth_getTransactionReceipt';
  const params = remaining.map(({ transactionHash }) => [transactionHash]);
  const receipts = await client.sendBatch(method, params);
  for (const [index, transaction] of remaining.entries()) {
    const receipt = receipts[index] ?? undefined;
    if (receipt !== undefined)
      byTransaction.set(transactionIn(transaction), logsOfReceipt(receipt, transaction, method));
  }
  // A node without the hashes of old transactions may have the receipts of their blocks.
  const unknown = remaining
    .filter((transaction) => !byTransaction.has(transactionIn(transaction)))
    .map(({ blockHash }) => blockHash);
  await pMap(new Set(unknown), read, { concurrency: CONCURRENT_BLOCKS });
  return byTransaction;
}

/** All logs of blocks, from their receipts: a node has a receipt completely or not at all. */
export async function logsOfBlocks(client: Rpc, hashes: readonly string[]): Promise<ChainLog[]> {
  const transactions = await pMap(hashes, (hash) => transactionsOf(client, hash), {
    concurrency: CONCURRENT_BLOCKS,
  });
  const all = transactions.flat();
  const receipts = await receiptLogsOf(client, all);
  return all.flatMap(
    (transaction) => receipts.get(transactionIn(transaction)) ?? receiptMissing(transaction),
  );
}

/** @throws ChainError RECEIPT_MISSING (retryable). */
export function receiptMissing({ transactionHash }: TransactionInBlock): never {
  const message =
    `The node does not have the receipt of transaction ${transactionHash}, ` +
    'and does not give all logs of its block. If the block is old, ' +
    'use a node that keeps its whole index of transactions (geth: --history.transactions 0).';
  throw new ChainError('RECEIPT_MISSING', message);
}

type Receipt = Record<string, unknown>;

/**
 * The logs of each transaction of a block. No log may be left out: they are counted through the block, or
 * through each transaction.
 */
function logsOfBlock(receipts: readonly unknown[], blockHash: string): [string, ChainLog[]][] {
  let next = 0;
  return receipts.map((receipt) => {
    const transactionHash = textOf(GET_BLOCK_RECEIPTS, (receipt as Receipt).transactionHash);
    const logs = logsOfReceipt(receipt, { transactionHash, blockHash }, GET_BLOCK_RECEIPTS);
    const isCounted = [0, next].some((first) => logs.every(({ index }, place) => index === first + place));
    if (!isCounted) throw malformed(GET_BLOCK_RECEIPTS);
    next += logs.length;
    return [transactionIn({ transactionHash, blockHash }), logs];
  });
}

/**
 * The logs of a transaction's receipt, in order. If the node gives several the same index, the order is that
 * of the receipt.
 *
 * @throws ChainError BLOCK_CHANGED, ANSWERS_DIFFER if a log may be there twice (both retryable).
 */
export function logsOfReceipt(answer: unknown, transaction: TransactionInBlock, method: string): ChainLog[] {
  const { logs, transactionHash, blockHash } = answer as Receipt;
  if (!Array.isArray(logs) || transactionHash !== transaction.transactionHash) throw malformed(method);
  if (blockHash !== transaction.blockHash) {
    const message = `Transaction ${transactionHash} moved to another block while its block was being read.`;
    throw new ChainError('BLOCK_CHANGED', message);
  }
  const sorted = parseLogs(method, logs);
  if (sorted.length < logs.length) {
    const message = `The receipt of transaction ${transactionHash} has a log twice under one index.`;
    throw new ChainError('ANSWERS_DIFFER', message);
  }
  const isNumbered = new Set(sorted.map(({ index }) => index)).size === sorted.length;
  return isNumbered ? sorted : logs.flatMap((log) => parseLogs(method, [log]));
}

export const GET_BLOCK_RECEIPTS = 'eth_getBlockReceipts';
/** Fewer receipts of a block go into one request, and are shorter than those of a whole block. */
const FEWEST_OF_A_BLOCK = 7;
/** Blocks whose receipts are requested at the same time. */
const CONCURRENT_BLOCKS = 4;
/** A node that gave no receipts of so many blocks in a row is not asked for those of others. */
const MOST_WITHOUT_RECEIPTS = 3;

/**
 * Reads the receipts of all transactions of a block. Null if the node does not give them, or not as they
 * should be: nodes and providers that lack the method say so in many ways, and every receipt can also be
 * requested by its transaction.
 */
export async function blockReceiptsOf<T>(
  client: Rpc,
  blockHash: string,
  read: (receipts: unknown[]) => T,
): Promise<T | null> {
  if (client.learned.blocksWithoutReceipts >= MOST_WITHOUT_RECEIPTS) return null;
  try {
    const answer = await client.send(GET_BLOCK_RECEIPTS, [blockHash]);
    if (!Array.isArray(answer)) throw malformed(GET_BLOCK_RECEIPTS);
    const receipts = read(answer);
    client.learned.blocksWithoutReceipts = 0;
    return receipts;
  } catch (error) {
    if (isThrottled(error) || isBlockAbsent(error)) return null;
    client.learned.blocksWithoutReceipts++;
    return null;
  }
}

/** Whether the node has the receipts of a block with logs, or these logs. */
export async function hasReceipts(client: Rpc, blockHash: string): Promise<boolean> {
  const [first] = await transactionsOf(client, blockHash);
  if ((await client.send('eth_getTransactionReceipt', [first?.transactionHash])) !== null) return true;
  // Nodes find by hash only the transactions of about the last year.
  if (await blockReceiptsOf(client, blockHash, ({ length }) => length)) return true;
  return (await logsOf(client, { blockHash })).length > 0;
}

/**
 * The sender of a transaction, in lower case. The transaction must be in the block. Nodes find by hash only
 * the transactions of about the last year (geth's `--history.transactions`); older ones are found by their
 * position in the block.
 */
export async function senderOf(client: Rpc, transactionHash: string, blockHash: string): Promise<string> {
  const method = 'eth_getTransactionByHash';
  const transaction =
    (await client.send(method, [transactionHash])) ??
    (await transactionInBlock(client, transactionHash, blockHash));
  const { blockHash: actualBlock, from } = (transaction ?? {}) as Record<string, unknown>;
  if (actualBlock !== blockHash) throw malformed(method);
  return textOf(method, from).toLowerCase();
}

async function transactionInBlock(client: Rpc, transactionHash: string, blockHash: string): Promise<unknown> {
  const all = await transactionsOf(client, blockHash);
  const index = all.findIndex((other) => other.transactionHash === transactionHash);
  return index < 0
    ? undefined
    : client.send('eth_getTransactionByBlockHashAndIndex', [blockHash, toQuantity(index)]);
}
