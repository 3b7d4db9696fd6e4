import { NETWORKS, knownNetworks, type Network } from '../chain/networks';
import { createChainCheck, createRpcClient, type RpcClient } from '../chain/rpc-client';
import { ChainError, codeOf, ConfigurationError, messageOf, ServiceError } from '../base/errors';
import { printableUrl, secretMasker, secretPartsOf } from '../base/mask-secrets';
import { createRegistryFinder, type RegistryOnChain } from '../registry/registry-contracts';

/** A registry and the clients of its chain. */
export interface ReachedRegistry {
  network: Network;
  client: RpcClient;
  /** For queries over ranges of logs. */
  bulkClient: RpcClient;
  registry: RegistryOnChain;
}

/** A node of a network. */
export interface NetworkNode {
  network: Network;
  url: string;
}

/**
 * Connects to a registry at a node and closes the connection afterwards.
 *
 * @throws ConfigurationError CHAIN_ID_MISMATCH; ChainError RPC_UNREACHABLE, REGISTRY_MISSING,
 *   REGISTRY_INVALID; ChainError NODE_FAILED for a library's error, masked because it may contain the URL
 *   with its key; any other error of `read`.
 */
export async function reachRegistry<T>(
  { network, url }: NetworkNode,
  address: string,
  read: (reached: ReachedRegistry) => Promise<T>,
): Promise<T> {
  const client = createRpcClient(url, network);
  const bulkClient = createRpcClient(url, network, 'bulk');
  try {
    await createChainCheck(client, url, network)();
    const registry = await createRegistryFinder(client, address)();
    return await read({ network, client, bulkClient, registry });
  } catch (thrown) {
    throw isOfLibrary(thrown) ? nodeFailed(thrown, url) : thrown;
  } finally {
    client.destroy();
    bulkClient.destroy();
  }
}

/** @throws ConfigurationError NETWORK_UNKNOWN. */
export function networkOfChain(chainId: number): Network {
  const network = NETWORKS.find((known) => known.chainId === chainId);
  if (network) return network;
  const message = `Chain ${chainId} is not a network of the registry's contracts.`;
  throw new ConfigurationError('NETWORK_UNKNOWN', message, { remedy: `Known: ${knownNetworks()}.` });
}

function isOfLibrary(thrown: unknown): boolean {
  return !(thrown instanceof ServiceError) && codeOf(thrown) !== undefined;
}

function nodeFailed(thrown: unknown, url: string): ChainError {
  // The node chose this text: a terminal prints it through cli/terminal/printable.ts, a page as text.
  const reason = secretMasker(secretPartsOf(url))(messageOf(thrown)).slice(0, LONGEST_REASON);
  return new ChainError('NODE_FAILED', `The node at ${printableUrl(url)} could not be read: ${reason}`, {
    retryable: true,
  });
}

/** Error messages of ethers contain the whole request and response. */
const LONGEST_REASON = 400;
