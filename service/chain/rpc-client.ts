import { FetchRequest, Network as EthersNetwork, type JsonRpcProvider } from 'ethers';
import { ConfigurationError } from '../base/errors';
import { printableUrl } from '../base/mask-secrets';
import { BulkRpcClient } from './bulk-rpc-client';
import { HttpRpcClient } from './http-rpc-client';
import { NETWORKS, type Network } from './networks';
import { readChainId } from './read-chain-id';
import { SocketRpcClient } from './socket-rpc-client';

/** An ethers provider for one chain, over HTTP or WebSocket. */
export type RpcClient = JsonRpcProvider & {
  /**
   * On a WebSocket only: calls the listener when the node tells of a new block, until the result is called.
   */
  onNewHead?(listener: () => void): () => void;
  /**
   * For reading logs over HTTP only: calls the method once for each of these parameters, several calls in one
   * request; gives the results in the same order.
   */
  sendBatches?(method: string, params: readonly unknown[][]): Promise<unknown[]>;
};

const REQUEST_TIMEOUT_MS = 30_000;
/** How often a receipt that is waited for is asked for: once a block, within these bounds. */
const SHORTEST_POLLING_INTERVAL_MS = 200;
const LONGEST_POLLING_INTERVAL_MS = 4_000;

/**
 * Connects to a chain. ethers caches equal calls for 250 ms, which makes nonces and heads stale: the cache is
 * off. Requests are not batched by themselves: one slow or refused call must not take others with it.
 *
 * @param use `bulk` for reading logs: answers may be large, and a refusal, "too many requests" too, is
 *   reported at once, so that less can be asked for. `single` repeats a request that came too soon.
 */
export function createRpcClient(url: string, network: Network, use: 'single' | 'bulk' = 'single'): RpcClient {
  // Not ethers' own entry for the chain: for Polygon's it asks a gas station of ethers' choice when the node
  // is to be asked for the fees.
  const chain = new EthersNetwork(network.name, network.chainId);
  const pollingInterval = Math.min(
    Math.max(network.blockTimeMs, SHORTEST_POLLING_INTERVAL_MS),
    LONGEST_POLLING_INTERVAL_MS,
  );
  const options = { cacheTimeout: -1, batchMaxCount: 1, staticNetwork: chain, pollingInterval };
  if (/^wss?:/.test(url)) return new SocketRpcClient(url, chain, options, REQUEST_TIMEOUT_MS);
  if (use === 'bulk') return new BulkRpcClient(url, chain, options, REQUEST_TIMEOUT_MS);
  const request = new FetchRequest(url);
  request.timeout = REQUEST_TIMEOUT_MS;
  return new HttpRpcClient(request, chain, options);
}

/**
 * Asks the node for its chain id, once it can be reached, and remembers a right answer.
 *
 * @throws ConfigurationError CHAIN_ID_MISMATCH when the node is of another chain than NET says: signing or
 *   reading there would put documents on the wrong chain. What readChainId throws.
 */
export function createChainCheck(client: RpcClient, url: string, network: Network): () => Promise<void> {
  let checked = false;
  return async () => {
    if (checked) return;
    const chainId = await readChainId(client, url, network);
    if (chainId !== network.chainId) throw wrongChain(chainId, url, network);
    checked = true;
  };
}

function wrongChain(chainId: number, url: string, network: Network): ConfigurationError {
  const actual = NETWORKS.find((known) => known.chainId === chainId);
  const message =
    `NET is ${network.name} (chain id ${network.chainId}), but the node at ${printableUrl(url)} is of ` +
    `${actual ? `${actual.name} (chain id ${chainId})` : `chain id ${chainId}`}.`;
  const remedy = `Set NET=${chainId}, or point RPC_URL at a node of ${network.name}.`;
  return new ConfigurationError('CHAIN_ID_MISMATCH', `${message} ${remedy}`, { remedy });
}
