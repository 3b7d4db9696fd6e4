import { Wallet } from 'ethers';
import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import { findNetwork, knownNetworks, type Network } from '../../service/chain/networks';
import { rpcUrlOf, settingOf, type Settings } from '../../service/config/settings';
import { ConfigurationError } from '../../service/base/errors';
import { printableUrl } from '../../service/base/mask-secrets';
import { refusePublishedKey } from '../../cli/transactions';

/**
 * The network to deploy on.
 *
 * - `network`: undefined for Hardhat's in-process network, which ends with the command.
 * - `node`: the URL for messages and journals, without its secrets.
 */
export interface Target {
  readonly network: Network | undefined;
  readonly name: string;
  readonly isLocal: boolean;
  readonly node: string;
}

/**
 * The network of NET or of `--network`, checked before anything is sent.
 *
 * @throws ConfigurationError if a setting is wrong or missing for this network, or the wallet must not be
 *   used on it.
 */
export function targetOf(hre: HardhatRuntimeEnvironment, settings: Settings): Target {
  // These settings are needed only after everything is paid for; check them now.
  settingOf(settings, 'NET');
  settingOf(settings, 'TOKEN_REGISTRY_ADDRESS');
  const { name } = hre.network;
  if (name === 'hardhat') return { network: undefined, name, isLocal: true, node: 'in-process' };
  const network = findNetwork(name);
  if (network === undefined) {
    throw new ConfigurationError('NETWORK_UNKNOWN', `There is no network "${name}".`, {
      remedy: `Use --network with one of ${knownNetworks()}.`,
    });
  }
  const url = httpRpcUrlOf(network, settings);
  if (!network.local) checkPublicWallet(network, settings);
  return { network, name, isLocal: network.local, node: printableUrl(url) };
}

/**
 * The URL of a node that Hardhat can use.
 *
 * @throws ConfigurationError RPC_URL_NOT_HTTP, NOT_CONFIGURED.
 */
export function httpRpcUrlOf(network: Network, settings: Settings): string {
  const url = rpcUrlOf(network, settings);
  if (!/^wss?:/.test(url)) return url;
  const message = 'RPC_URL is a WebSocket URL; Hardhat needs one for HTTP.';
  const remedy = "Set RPC_URL to the node's http:// or https:// URL for this command.";
  throw new ConfigurationError('RPC_URL_NOT_HTTP', message, { remedy });
}

function checkPublicWallet(network: Network, settings: Settings): void {
  const key = settingOf(settings, 'WALLET_PRIVATE_KEY');
  if (key === undefined) {
    throw new ConfigurationError(
      'NOT_CONFIGURED',
      `WALLET_PRIVATE_KEY is needed to deploy on ${network.name}.`,
      {
        remedy:
          'Set it to the private key of a wallet that can pay for the transactions; ' +
          'it becomes the admin and minter.',
      },
    );
  }
  refusePublishedKey(network, new Wallet(key).address);
}
