import type { HardhatUserConfig } from 'hardhat/config';
import { HARDHAT_NETWORK_NAME } from 'hardhat/plugins';
import { systemTime } from '../service/base/time';
import { publishedWallet, refusePublishedKey } from '../cli/transactions';
import { ChainError, codeOf, ConfigurationError, messageOf } from '../service/base/errors';
import { printableUrl } from '../service/base/mask-secrets';
import {
  DEFAULT_NETWORK,
  findNetwork,
  knownNetworks,
  NETWORKS,
  type Network,
} from '../service/chain/networks';
import { readChainId } from '../service/chain/reach-node';
import { connectNode } from '../service/chain/chain';
import { walletKeyOf } from '../service/config/key-settings';
import { NODE_CHAIN_ID, rpcUrlsOf, settingOf, type Settings } from '../service/config/settings';
import type { TransactionSigner } from '../service/keys/transaction-signer';
import { openWallet } from '../service/keys/wallet';

/** Placeholder URL for a network whose provider key is not set: a name that never resolves (RFC 2606). */
const UNREACHABLE_URL = 'http://provider-key-missing.invalid';

/**
 * Makes every network of the service a Hardhat network of the same name, and NET's network the default.
 * RPC_URL replaces the URL; Hardhat uses the first of several. It gets no key: `deploy` signs with the wallet
 * of the settings. A missing provider key or a wrong NET must not break commands that do not need it;
 * `deploy` reports it.
 */
export function hardhatNetworks(
  settings: Settings,
): Required<Pick<HardhatUserConfig, 'defaultNetwork' | 'networks'>> {
  const networks: HardhatUserConfig['networks'] = {
    hardhat: { chainId: settingOf(settings, 'LOCAL_CHAIN_ID') },
  };
  for (const network of NETWORKS) {
    const { name, chainId, rpcKey, local } = network;
    const isKeyMissing = rpcKey !== undefined && settings[rpcKey] === undefined;
    const url =
      isKeyMissing && settings.RPC_URL === undefined ? UNREACHABLE_URL : rpcUrlsOf(network, settings)[0];
    networks[name] = { chainId, url, accounts: local ? 'remote' : [] };
  }
  const defaultNetwork = findNetwork(settings.NET ?? DEFAULT_NETWORK)?.name ?? HARDHAT_NETWORK_NAME;
  return { defaultNetwork, networks };
}

/**
 * The network of NET or of `--network`.
 *
 * @throws ConfigurationError if a setting that `deploy` needs, now or at its end, is wrong or missing.
 */
export function networkOf(name: string, settings: Settings): Network {
  settingOf(settings, 'NET');
  settingOf(settings, 'TOKEN_REGISTRY_ADDRESS');
  const network = findNetwork(name);
  if (network === undefined) {
    const remedy = `Use --network with one of ${knownNetworks()}.`;
    throw new ConfigurationError('NETWORK_UNKNOWN', `There is no network "${name}".`, { remedy });
  }
  httpRpcUrlOf(network, settings);
  return network;
}

/**
 * The URL of a node that Hardhat can use.
 *
 * @throws ConfigurationError RPC_URL_NOT_HTTP, NOT_CONFIGURED.
 */
export function httpRpcUrlOf(network: Network, settings: Settings): string {
  // Hardhat talks to one node, so it gets the first that it can use.
  const url = rpcUrlsOf(network, settings).find((one) => !/^wss?:/.test(one));
  if (url !== undefined) return url;
  const message = 'RPC_URL is a WebSocket URL; Hardhat needs one for HTTP.';
  const remedy = "Set RPC_URL to the node's http:// or https:// URL for this command.";
  throw new ConfigurationError('RPC_URL_NOT_HTTP', message, { remedy });
}

/**
 * The wallet that deploys and becomes the registry's admin and minter: that of the settings, or the first
 * account of every Hardhat node on a local network.
 *
 * @throws ConfigurationError NOT_CONFIGURED, WALLET_KEY_PUBLISHED.
 */
export function walletOf(network: Network, settings: Settings): TransactionSigner {
  const key = walletKeyOf(settings);
  if (key === undefined) {
    if (network.local) return openWallet(systemTime, publishedWallet(0));
    const message = `WALLET_PRIVATE_KEY is needed to deploy on ${network.name}.`;
    const remedy =
      'Set it to the private key of a wallet that can pay for the transactions, or set WALLET_SIGNER_URL ' +
      'or WALLET_PKCS11_KEY; the wallet becomes the admin and minter.';
    throw new ConfigurationError('NOT_CONFIGURED', message, { remedy });
  }
  const wallet = openWallet(systemTime, key);
  refusePublishedKey(network, wallet.address);
  return wallet;
}

/**
 * Checks that the network's node answers and belongs to its chain. The service's client asks, because Hardhat
 * does not report that a provider key was refused.
 *
 * @throws ChainError RPC_UNREACHABLE, RPC_KEY_REFUSED, ConfigurationError CHAIN_ID_MISMATCH.
 */
export async function checkNode(network: Network, settings: Settings): Promise<void> {
  const { name, local } = network;
  const url = httpRpcUrlOf(network, settings);
  const client = connectNode(url, network, systemTime, 'bulk');
  try {
    const chainId = await readChainId(client, url, network);
    if (chainId === network.chainId) return;
    const node = printableUrl(url);
    const message = `The node at ${node} is of chain ${chainId}, but ${name} is ${network.chainId}.`;
    const remedy =
      `Set NET, or --network where you used it, to the network of chain ${chainId}, ` +
      `or point RPC_URL at a node of ${name}.`;
    throw new ConfigurationError('CHAIN_ID_MISMATCH', message, { remedy });
  } catch (cause) {
    if (codeOf(cause) !== 'RPC_UNREACHABLE') throw cause;
    const start = network.chainId === NODE_CHAIN_ID ? '' : `LOCAL_CHAIN_ID=${network.chainId} `;
    const remedy = local
      ? `Start one with \`${start}npx hardhat node\`, or set RPC_URL to yours.`
      : 'Check RPC_URL and the key, or try again later.';
    const message = `${messageOf(cause)} (network ${name})`;
    throw new ChainError('RPC_UNREACHABLE', message, { cause, remedy });
  } finally {
    client.close();
  }
}
