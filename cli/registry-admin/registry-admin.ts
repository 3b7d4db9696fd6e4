import { Wallet, getAddress } from 'ethers';
import type { Network } from '../../service/chain/networks';
import { readSettings } from '../../service/config/config';
import { ConfigurationError } from '../../service/base/errors';
import { settingOf } from '../../service/config/settings';
import { TradeTrustTokenStandard__factory, type TradeTrustTokenStandard } from '../../typechain-types';
import { refusePublishedKey } from '../transactions/published-keys';
import { withRegistry, type ReachedRegistry } from '../token/find-token';

/** A registry and the wallet of the settings that administers it. */
export interface RegistryAdmin extends ReachedRegistry {
  wallet: Wallet;
  /** Read-only: transactions go through the wallet. */
  contract: TradeTrustTokenStandard;
  /** Address of the registry with its checksum. */
  address: string;
  /**
   * The options that direct another command to this registry, each with a leading space. Empty for the
   * registry of the settings.
   */
  flags: string;
}

/**
 * Connects the wallet of WALLET_PRIVATE_KEY to a registry, and closes the connection afterwards.
 *
 * @throws ConfigurationError NOT_CONFIGURED, WALLET_KEY_PUBLISHED; the errors of withRegistry and `act`.
 */
export async function asAdmin<T>(
  place: { chainId: number; registry: string },
  act: (admin: RegistryAdmin) => Promise<T>,
): Promise<T> {
  const privateKey = settingOf(readSettings().settings, 'WALLET_PRIVATE_KEY');
  if (privateKey === undefined) {
    const remedy = "Set it to the private key of a wallet that has the registry's role for this.";
    const message = `WALLET_PRIVATE_KEY is missing. ${remedy}`;
    throw new ConfigurationError('NOT_CONFIGURED', message, { remedy });
  }
  return withRegistry(place, async (reached) => {
    const wallet = new Wallet(privateKey, reached.client);
    refusePublishedKey(reached.network, wallet.address);
    const contract = TradeTrustTokenStandard__factory.connect(place.registry, reached.client);
    const address = getAddress(place.registry);
    return act({ ...reached, wallet, contract, address, flags: flagsOf(address, reached.network) });
  });
}

function flagsOf(address: string, { name, chainId }: Network): string {
  const { settings } = readSettings();
  const isOfSettings =
    settings.TOKEN_REGISTRY_ADDRESS?.toLowerCase() === address.toLowerCase() &&
    settingOf(settings, 'NET').chainId === chainId;
  return isOfSettings ? '' : ` --registry ${address} --network ${name}`;
}
