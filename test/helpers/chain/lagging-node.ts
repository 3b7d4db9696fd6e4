import type { JsonRpcProvider } from 'ethers';
import type { Answerer, RpcAnswer } from './rpc-proxy';

/** How far a node that is not up to date has come. */
export interface Lag {
  /** What it says its head is. */
  toldHead: () => number;
  /** The last block that it has. */
  lastBlock: () => number;
  /** The last block whose logs it has; a provider answers from several nodes, each as far as it has come. */
  lastLogs: () => number;
}

/**
 * Answers as a provider behind a load balancer does: each call may come to a node that is behind the one that
 * told of the head. What it does not have yet it does not report as an error, where real nodes do not: blocks
 * are null, logs are silently missing.
 */
export function laggingNode(client: JsonRpcProvider, { toldHead, lastBlock, lastLogs }: Lag): Answerer {
  return async (method, params, forward) => {
    const [first] = params;
    if (method === 'eth_blockNumber') return { result: hex(toldHead()) };
    if (method === 'eth_getBlockByNumber' && first === 'latest') return forward([hex(toldHead()), params[1]]);
    if (method === 'eth_getBlockByNumber') return Number(first) > lastBlock() ? { result: null } : forward();
    if (method === 'eth_getBlockByHash') {
      const block = (await client.getBlock(String(first)))?.number ?? Infinity;
      return block > lastBlock() ? { result: null } : forward();
    }
    return method === 'eth_getLogs' ? logsUpTo(client, lastLogs(), params, await forward()) : 'none';
  };
}

async function logsUpTo(
  client: JsonRpcProvider,
  last: number,
  [filter]: readonly unknown[],
  answer: RpcAnswer,
): Promise<RpcAnswer> {
  const { blockHash } = filter as { blockHash?: string };
  if (blockHash !== undefined) {
    const block = (await client.getBlock(blockHash))?.number ?? Infinity;
    return block > last ? { error: { code: -32000, message: 'unknown block' } } : answer;
  }
  if ('error' in answer) return answer;
  const logs = answer.result as { blockNumber: string }[];
  return { result: logs.filter(({ blockNumber }) => Number(blockNumber) <= last) };
}

function hex(number: number): string {
  return `0x${Math.max(number, 0).toString(16)}`;
}
