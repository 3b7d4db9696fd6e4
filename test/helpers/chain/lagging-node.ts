import type { JsonRpcProvider } from 'ethers';
import type { Answerer, RpcAnswer } from './rpc-proxy';

/** The state of a node that is behind. */
export interface Lag {
  /** The head that it reports. */
  toldHead: () => number;
  /** The last block that it has. */
  lastBlock: () => number;
  /** The last block whose logs it has. A provider has several nodes, some further behind than others. */
  lastLogs: () => number;
}

/**
 * Answers like a provider behind a load balancer: a call may reach a node that is behind the one that
 * reported the head. Like real nodes, it does not report missing data as an error: blocks are null, and logs
 * of a range are missing silently.
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
