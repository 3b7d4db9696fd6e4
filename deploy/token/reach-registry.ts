import { NETWORKS, knownNetworks, type Network } from '../../service/chain/networks';
import { createChainCheck, createRpcClient, type RpcClient } from '../../service/chain/rpc-client';
import { readSettings } from '../../service/config';
import { ConfigurationError } from '../../service/errors';
import { secretMasker, secretPartsOf } from '../../service/secrets';
import { networkOf, rpcUrlOf, type Settings } from '../../service/settings';
import { createRegistryFinder, type RegistryOnChain } from '../../service/watcher/registry-contracts';

/** A registry whose chain a command reads. `mask` for whatever a library says of a failure: it may hold the URL with its key. */
export interface ReachedRegistry {
  network: Network;
  client: RpcClient;
  registry: RegistryOnChain;
  mask(text: string): string;
}

/**
 * Reads from a registry, on whichever chain it is, and closes the connection afterwards. The node is that of RPC_URL for the chain of NET, and
 * the network's own for any other chain.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN, CHAIN_ID_MISMATCH or a missing provider key; ChainError RPC_UNREACHABLE,
 *   REGISTRY_MISSING, REGISTRY_INVALID; whatever `read` throws.
 */
export async function withRegistry<T>(
  { chainId, registry: address }: { chainId: number; registry: string },
  read: (reached: ReachedRegistry) => Promise<T>,
): Promise<T> {
  const { settings } = readSettings();
  const network = knownNetworkOf(chainId);
  const url = nodeUrlOf(network, settings);
  const client = createRpcClient(url, network);
  try {
    await createChainCheck(client, url, network)();
    const registry = await createRegistryFinder(client, address)();
    return await read({ network, client, registry, mask: secretMasker(secretPartsOf(url)) });
  } finally {
    client.destroy();
  }
}

function knownNetworkOf(chainId: number): Network {
  const network = NETWORKS.find((known) => known.chainId === chainId);
  if (network) return network;
  const message = `Chain ${chainId} is not a network of the registry's contracts.`;
  throw new ConfigurationError('NETWORK_UNKNOWN', message, { remedy: `Known: ${knownNetworks()}.` });
}

function nodeUrlOf(network: Network, settings: Settings): string {
  const isConfigured = networkOf(settings).chainId === network.chainId;
  return rpcUrlOf(network, isConfigured ? settings : { ...settings, RPC_URL: undefined });
}
