import { logsOf, type ChainLog, type LogFilter } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';

/** How often two answers to the same question may differ before the reading is given up for a while. */
const READINGS = 3;

/**
 * The logs that match, asked for twice: the answers must agree. Providers behind a load balancer now and then
 * leave logs out, and what is left out here would be lost.
 *
 * @throws ChainError ANSWERS_DIFFER (retryable)
 */
export async function readTwice(client: RpcClient, filter: LogFilter): Promise<ChainLog[]> {
  for (let reading = 1; reading <= READINGS; reading++) {
    const [logs, again] = await Promise.all([logsOf(client, filter), logsOf(client, filter)]);
    if (fingerprintOf(logs) === fingerprintOf(again)) return logs;
  }
  const message = 'The node gives different logs each time it is asked for the same blocks.';
  throw new ChainError('ANSWERS_DIFFER', message, { retryable: true });
}

function fingerprintOf(logs: readonly ChainLog[]): string {
  return logs.map(({ blockHash, index }) => `${blockHash}:${index}`).join();
}
