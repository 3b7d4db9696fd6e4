import type { Config } from '../config/config';
import { networkOfChain, type NetworkNode } from '../token/reach-registry';

/**
 * The node at which a registry is read: that of the registry, if it is followed, or another of its chain.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN, or CONFIGURATION_INVALID without the key of the network's node.
 */
export function nodeOf(
  config: Pick<Config, 'network' | 'rpcUrl' | 'registries' | 'followedOf'>,
  { chainId, registry: address }: { chainId: number; registry: string },
): NetworkNode {
  const network = networkOfChain(chainId);
  const followed = config.registries.filter((one) => one.network.chainId === chainId);
  const same = followed.find((one) => one.address.toLowerCase() === address.toLowerCase());
  const [other = same] = followed;
  if (other !== undefined) return { network, url: (same ?? other).rpcUrl };
  if (config.network.chainId === chainId) return { network, url: config.rpcUrl };
  return { network, url: config.followedOf({ network, address }).rpcUrl };
}
