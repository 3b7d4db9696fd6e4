import { NETWORKS, knownNetworks, type Network } from '../../service/chain/networks';
import { createChainCheck, createRpcClient, type RpcClient } from '../../service/chain/rpc-client';
import { readSettings } from '../../service/config/config';
import { ChainError, codeOf, ConfigurationError, messageOf, ServiceError } from '../../service/base/errors';
import { createRegistryFinder, type RegistryOnChain } from '../../service/registry/registry-contracts';
import { printableUrl, secretMasker, secretPartsOf } from '../../service/base/mask-secrets';
import { rpcUrlOf, settingOf, type Settings } from '../../service/config/settings';
import { printable } from '../terminal/printable';

/** A registry and the clients of its chain. */
export interface ReachedRegistry {
  network: Network;
  client: RpcClient;
  /** For queries over ranges of logs. */
  bulkClient: RpcClient;
  registry: RegistryOnChain;
  /** Without the settings that apply only to NET's network, if this is another one. */
  settings: Settings;
}

/**
 * Connects to a registry on any supported chain and closes the connection afterwards. The node is that of
 * RPC_URL for the chain of NET, or for any chain while NET is not set; otherwise the network's own.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN, CHAIN_ID_MISMATCH or a missing provider key; ChainError
 *   RPC_UNREACHABLE, REGISTRY_MISSING, REGISTRY_INVALID; ChainError NODE_FAILED for a library's error, masked
 *   because it may contain the URL with its key; any other error of `read`.
 */
export async function withRegistry<T>(
  { chainId, registry: address }: { chainId: number; registry: string },
  read: (reached: ReachedRegistry) => Promise<T>,
): Promise<T> {
  const network = knownNetworkOf(chainId);
  const settings = settingsFor(network);
  const url = rpcUrlOf(network, settings);
  const client = createRpcClient(url, network);
  const bulkClient = createRpcClient(url, network, 'bulk');
  try {
    await createChainCheck(client, url, network)();
    const registry = await createRegistryFinder(client, address)();
    return await read({ network, client, bulkClient, registry, settings });
  } catch (thrown) {
    throw isOfLibrary(thrown) ? nodeFailed(thrown, url) : thrown;
  } finally {
    client.destroy();
    bulkClient.destroy();
  }
}

/** A SyntaxError means that an answer is not JSON. */
function isOfLibrary(thrown: unknown): boolean {
  return !(thrown instanceof ServiceError) && (codeOf(thrown) !== undefined || thrown instanceof SyntaxError);
}

function nodeFailed(thrown: unknown, url: string): ChainError {
  const reason = printable(secretMasker(secretPartsOf(url))(messageOf(thrown)), LONGEST_REASON);
  return new ChainError('NODE_FAILED', `The node at ${printableUrl(url)} could not be read: ${reason}`, {
    retryable: true,
  });
}

/** Error messages of ethers contain the whole request and response. */
const LONGEST_REASON = 400;

function knownNetworkOf(chainId: number): Network {
  const network = NETWORKS.find((known) => known.chainId === chainId);
  if (network) return network;
  const message = `Chain ${chainId} is not a network of the registry's contracts.`;
  throw new ConfigurationError('NETWORK_UNKNOWN', message, { remedy: `Known: ${knownNetworks()}.` });
}

function settingsFor(network: Network): Settings {
  const { settings } = readSettings();
  const isOfNet = settings.NET === undefined || settingOf(settings, 'NET').chainId === network.chainId;
  return isOfNet ? settings : { ...settings, RPC_URL: undefined, GAS_STATION_URL: undefined };
}
