import { Network as EthersNetwork, type JsonRpcProvider } from 'ethers';
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
   * WebSocket only: calls the listener for each new block that the node reports, until the returned function
   * is called.
   */
  onNewHead?(listener: () => void): () => void;
  /**
   * `bulk` over HTTP only: calls the method once for each entry of `params`, several calls per request. The
   * results are in the same order.
   */
  sendBatches?(method: string, params: readonly unknown[][]): Promise<unknown[]>;
};

const REQUEST_TIMEOUT_MS = 30_000;
/** The polling interval is the block time, within these bounds. */
const SHORTEST_POLLING_INTERVAL_MS = 200;
const LONGEST_POLLING_INTERVAL_MS = 4_000;

/**
 * Creates a client of a chain. ethers caches equal calls for 250 ms, which makes nonces and heads stale, so
 * the cache is off. ethers' batching is off too, because one slow or refused call must not affect others.
 *
 * @param use `bulk` for reading logs: answers may be large, and a refused range is reported early, so that
 *   the caller can ask for fewer blocks. `single` repeats throttled requests.
 */
export function createRpcClient(url: string, network: Network, use: 'single' | 'bulk' = 'single'): RpcClient {
  // ethers' own entry for the chain is not used: for Polygon it asks a gas station of ethers' choice instead
  // of the node for the fees.
  const chain = new EthersNetwork(network.name, network.chainId);
  const pollingInterval = Math.min(
    Math.max(network.blockTimeMs, SHORTEST_POLLING_INTERVAL_MS),
    LONGEST_POLLING_INTERVAL_MS,
  );
  const options = { cacheTimeout: -1, batchMaxCount: 1, staticNetwork: chain, pollingInterval };
  if (/^wss?:/.test(url)) return new SocketRpcClient(url, chain, options, REQUEST_TIMEOUT_MS);
  if (use === 'bulk') return new BulkRpcClient(url, chain, options, REQUEST_TIMEOUT_MS);
  return new HttpRpcClient(url, chain, options, REQUEST_TIMEOUT_MS);
}

/**
 * Creates a check of the node's chain id. A correct answer is remembered.
 *
 * @throws ConfigurationError CHAIN_ID_MISMATCH when the node belongs to another chain than NET: signing or
 *   reading there would put documents on the wrong chain. Also every error of readChainId.
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
