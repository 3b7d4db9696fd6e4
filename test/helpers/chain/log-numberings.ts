import type { RpcAnswer } from './rpc-proxy';

/**
 * How a node counts its logs: through the block, as it should be, through each transaction, through each
 * answer, or not at all.
 */
export const NUMBERINGS = ['block', 'transaction', 'answer', 'none'] as const;
export type Numbering = (typeof NUMBERINGS)[number];

interface Log {
  logIndex: string;
  transactionHash: string;
}

interface Receipt {
  transactionHash: string;
  logs: Log[];
}

/** Asks the node, which counts through the block. */
type Ask = (method: string, params: readonly unknown[]) => Promise<RpcAnswer>;

/** Numbers the logs in an answer as another node does, which may count in receipts otherwise. */
export async function renumber(
  method: string,
  answer: RpcAnswer,
  numbering: { logs: Numbering; receipts: Numbering },
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
