import { logsOf, type ChainLog, type LogFilter } from '../chain/read-chain';
import type { RpcClient } from '../chain/rpc-client';
import { ChainError } from '../base/errors';

/** Maximum number of readings that differ before the error is thrown. */
const READINGS = 3;

/**
 * Reads the matching logs twice and compares the answers. Providers behind a load balancer sometimes omit
 * logs, and an omitted log would never be read.
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
