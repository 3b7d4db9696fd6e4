import { isError } from 'ethers';
import { ChainError } from '../errors';
import { printableUrl } from '../secrets';
import type { Network } from './networks';
import type { RpcClient } from './rpc-client';

/**
 * Asks a node which chain it is of.
 *
 * @throws ChainError RPC_UNREACHABLE (retryable) when nobody answers, or not as a node does; RPC_KEY_REFUSED (retryable), naming the setting
 *   that holds the key.
 */
export async function readChainId(client: RpcClient, url: string, network: Network): Promise<number> {
  const node = printableUrl(url);
  const chainId = await client.send('eth_chainId', []).then(Number, (cause: unknown) => {
    const status = isError(cause, 'SERVER_ERROR') ? cause.response?.statusCode : undefined;
    if (status === 401 || status === 403) throw keyRefused(status, url, network, cause);
    throw unreachable(`The node at ${node} ${problemOf(status)}.`, cause);
  });
  if (Number.isSafeInteger(chainId) && chainId > 0) return chainId;
  throw unreachable(`The node at ${node} does not say which chain it is of.`);
}

/** What an HTTP status says of a node; undefined: there was no answer. */
function problemOf(status: number | undefined): string {
  if (status === undefined) return 'does not answer';
  if (status === 402) return 'answers 402: its provider wants to be paid, or the quota is used up';
  if (status === 429) return 'answers 429: its provider is asked too often, or the quota is used up';
  return `answers ${status}, not as a node does`;
}

function unreachable(message: string, cause?: unknown): ChainError {
  return new ChainError('RPC_UNREACHABLE', message, { cause, retryable: true });
}

/** A provider does not know the key, or does not let it read this chain. Somebody may be about to allow it. */
function keyRefused(status: number, url: string, network: Network, cause: unknown): ChainError {
  const isOwnUrl = network.rpcKey !== undefined && url.startsWith(network.rpcUrl.split('{key}')[0] ?? '');
  const remedy = isOwnUrl
    ? `Check ${network.rpcKey}, and that it is allowed to use ${network.name}.`
    : 'Check the key in RPC_URL.';
  const message = `The node at ${printableUrl(url)} refuses the key (status ${status}). ${remedy}`;
  return new ChainError('RPC_KEY_REFUSED', message, { cause, remedy, retryable: true });
}
