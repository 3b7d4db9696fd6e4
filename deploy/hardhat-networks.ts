import type { HardhatUserConfig } from 'hardhat/config';
import { HARDHAT_NETWORK_NAME } from 'hardhat/plugins';
import { DEFAULT_NETWORK, findNetwork, NETWORKS, type Network } from '../service/chain/networks';
import { readSettings } from '../service/config/config';
import { rpcUrlOf, settingOf, type Settings } from '../service/config/settings';
import { readable } from './task-error';

type Networks = Required<Pick<HardhatUserConfig, 'defaultNetwork' | 'networks'>>;

/** Placeholder URL for a network whose provider key is not set: a name that never resolves (RFC 2606). */
const UNREACHABLE_URL = 'http://provider-key-missing.invalid';

/**
 * Makes every network of the service a Hardhat network of the same name, and NET's network the default.
 * RPC_URL replaces the URL. WALLET_PRIVATE_KEY is the only account; without it a local node's own accounts
 * are used.
 */
export function hardhatNetworks(): Networks {
  const { settings } = readSettings();
  try {
    const accounts = accountsOf(settings);
    const networks: Networks['networks'] = { hardhat: { chainId: settingOf(settings, 'LOCAL_CHAIN_ID') } };
    for (const network of NETWORKS) {
      networks[network.name] = {
        chainId: network.chainId,
        url: urlOf(network, settings),
        accounts: accounts ?? (network.local ? 'remote' : []),
      };
    }
    return { defaultNetwork: defaultNetworkOf(settings), networks };
  } catch (thrown) {
    throw readable(thrown);
  }
}

function accountsOf(settings: Settings): string[] | undefined {
  const key = settingOf(settings, 'WALLET_PRIVATE_KEY');
  return key === undefined ? undefined : [key];
}

/** A wrong NET must not break commands that do not need it; commands that do need it report the error. */
function defaultNetworkOf({ NET = DEFAULT_NETWORK }: Settings): string {
  return findNetwork(NET)?.name ?? HARDHAT_NETWORK_NAME;
}

/**
 * A missing provider key must not break commands that never reach that network; `hardhat deploy` requires it.
 */
function urlOf(network: Network, settings: Settings): string {
  const isKeyMissing = network.rpcKey !== undefined && settings[network.rpcKey] === undefined;
  if (isKeyMissing && settings.RPC_URL === undefined) return UNREACHABLE_URL;
  return rpcUrlOf(network, settings);
}
