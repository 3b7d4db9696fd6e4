import { getAddress } from 'ethers';
import { ConfigurationError } from '../base/errors';
import { findNetwork, knownNetworks } from '../chain/networks';
import type { FollowedRegistry, Following } from '../config/followed-registries';
import type { StoredRegistry } from './stored-registries';

/**
 * Combines a stored registry with the present settings.
 *
 * @throws ConfigurationError NETWORK_UNKNOWN, or CONFIGURATION_INVALID if the settings have no key for its
 *   network's node.
 */
export function followedRegistryOf(
  { chainId, address, startBlock, confirmations }: Omit<StoredRegistry, 'addedAt' | 'network'>,
  { followedOf }: Pick<Following, 'followedOf'>,
): FollowedRegistry {
  const network = findNetwork(String(chainId));
  if (network !== undefined)
    return followedOf({ network, address: getAddress(address), startBlock, confirmations });
  const remedy = `Known: ${knownNetworks()}.`;
  const message = `Chain ${chainId} is not a network of the registry's contracts. ${remedy}`;
  throw new ConfigurationError('NETWORK_UNKNOWN', message, { remedy });
}
