import type { HardhatUserConfig } from 'hardhat/config';
import { HARDHAT_NETWORK_NAME } from 'hardhat/plugins';
import { DEFAULT_NETWORK, findNetwork, NETWORKS, type Network } from '../service/chain/networks';
import { readSettings } from '../service/config/config';
import { rpcUrlOf, walletPrivateKeyOf } from '../service/config/settings';
import { ConfigurationError } from '../service/base/errors';
import { readable } from './task-error';

type Networks = Required<Pick<HardhatUserConfig, 'defaultNetwork' | 'networks'>>;
type Settings = ReturnType<typeof readSettings>['settings'];

/** Chain id of the in-process network, and the default of `npx hardhat node`. */
export const NODE_CHAIN_ID = 31337;

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
    const networks: Networks['networks'] = { hardhat: { chainId: localChainId(settings) } };
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
  const key = walletPrivateKeyOf(settings);
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

function localChainId(settings: Settings): number {
  const text = settings.LOCAL_CHAIN_ID;
  if (text === undefined) return NODE_CHAIN_ID;
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  const remedy = 'Unset it: 31337 is right unless a local node must have another chain id, such as 1337.';
  throw new ConfigurationError('CONFIGURATION_INVALID', `LOCAL_CHAIN_ID "${text}" is not a chain id.`, {
    remedy,
  });
}
