import pMap from 'p-map';
import { receiptLogsOf, type ChainLog, type TransactionInBlock } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';
import { readTwice } from './read-twice';

/**
 * Returns a log's position among the logs of its transaction, from 0.
 *
 * @throws ChainError ANSWERS_DIFFER (retryable) if the transaction's logs do not contain it.
 */
export type PositionOf = (log: ChainLog) => number;

/** Blocks that are requested at the same time. */
const CONCURRENT_BLOCKS = 8;

/**
 * Reads the positions of logs within their transactions; `eth_getLogs` only gives positions within blocks. It
 * reads one receipt per transaction, since a node has a receipt completely or not at all.
 *
 * Nodes index transactions by hash for about a year only (geth's `--history.transactions`). For a transaction
 * that the node does not find, all logs of its block are read.
 */
export async function readPositions(client: RpcClient, logs: readonly ChainLog[]): Promise<PositionOf> {
  const transactions = [...new Map(logs.map((log) => [keyOf(log), log])).values()];
  const receipts = await receiptLogsOf(client, transactions);
  const unknown = transactions.filter((_, index) => receipts[index] === undefined);
  const found = await readFromBlocks(client, unknown);
  return positionsAmong([...receipts.flatMap((receipt) => receipt ?? []), ...found]);
}

async function readFromBlocks(
  client: RpcClient,
  transactions: readonly TransactionInBlock[],
): Promise<ChainLog[]> {
  const wanted = new Set(transactions.map(keyOf));
  const blocks = [...new Set(transactions.map(({ blockHash }) => blockHash))];
  const logs = await pMap(blocks, (blockHash) => readTwice(client, { blockHash }), {
    concurrency: CONCURRENT_BLOCKS,
  });
  return logs.flat().filter((log) => wanted.has(keyOf(log)));
}

/** @param logs all logs of every transaction that will be looked up, in order within each transaction. */
export function positionsAmong(logs: readonly ChainLog[]): PositionOf {
  const byTransaction = new Map<string, ChainLog[]>();
  for (const log of logs) {
    const ofTransaction = byTransaction.get(keyOf(log));
    if (ofTransaction) ofTransaction.push(log);
    else byTransaction.set(keyOf(log), [log]);
  }
  return (log) => {
    const ofTransaction = byTransaction.get(keyOf(log)) ?? [];
    const position = log.index - (ofTransaction[0]?.index ?? 0);
    const found = ofTransaction[position];
    if (found && isSame(found, log)) return position;
    const message = `The node gives other logs for transaction ${log.transactionHash} than for its block.`;
    throw new ChainError('ANSWERS_DIFFER', message, { retryable: true });
  };
}

function keyOf({ transactionHash, blockHash }: TransactionInBlock): string {
  return `${blockHash}:${transactionHash}`;
}

function isSame(left: ChainLog, right: ChainLog): boolean {
  return (
    left.index === right.index &&
    left.address === right.address &&
    left.data === right.data &&
    left.topics.join() === right.topics.join()
  );
}
