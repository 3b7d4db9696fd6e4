import type { HardhatUserConfig } from 'hardhat/config';
import { findNetwork, NETWORKS, type ExplorerApi, type Network } from '../service/chain/networks';
import { readSettings } from '../service/config/config';
import { ConfigurationError } from '../service/base/errors';
import { settingOf, type Settings } from '../service/config/settings';
import { httpRpcUrlOf } from './registry/target';

type Explorers = Pick<HardhatUserConfig, 'blockscout' | 'etherscan' | 'sourcify'>;

/** One URL for all chains: each request names its chain. */
const ETHERSCAN_API_URL = 'https://api.etherscan.io/v2/api';

/** Settings of `hardhat verify` for the networks' explorers. Its task decides which explorer is asked. */
export function explorers(): Explorers {
  return {
    etherscan: {
      apiKey: readSettings().settings.ETHERSCAN_API_KEY ?? '',
      customChains: chainsOf('etherscan', () => ETHERSCAN_API_URL),
    },
    blockscout: { customChains: chainsOf('blockscout', (explorerUrl) => `${explorerUrl}/api`) },
    // Sourcify is a third party; nothing is sent there unasked.
    sourcify: { enabled: false },
  };
}

function chainsOf(api: ExplorerApi, apiUrlOf: (explorerUrl: string) => string) {
  return NETWORKS.flatMap(({ name, chainId, explorerApi, explorerUrl }) =>
    explorerApi === api && explorerUrl !== undefined
      ? [{ network: name, chainId, urls: { apiURL: apiUrlOf(explorerUrl), browserURL: explorerUrl } }]
      : [],
  );
}

/**
 * The network, if every setting is present that verifying a contract there needs.
 *
 * @throws ConfigurationError EXPLORER_UNKNOWN, NOT_CONFIGURED, or the code of a wrong setting.
 */
export function networkToVerifyOn(name: string, settings: Settings): Network & { explorerApi: ExplorerApi } {
  settingOf(settings, 'NET');
  const network = findNetwork(name);
  if (network?.explorerApi === undefined) throw unknown(name);
  const { explorerApi } = network;
  httpRpcUrlOf(network, settings);
  if (explorerApi === 'etherscan' && settingOf(settings, 'ETHERSCAN_API_KEY') === undefined)
    throw keyProblem(`is needed to verify contracts on ${name}`);
  return { ...network, explorerApi };
}

/** Rewrites an answer of Etherscan so that it names the setting to change. */
export function explorerError(thrown: unknown): unknown {
  if (!(thrown instanceof Error) || !/\bapi key\b/i.test(thrown.message)) return thrown;
  return keyProblem(`is refused by Etherscan: ${thrown.message}`, thrown);
}

function unknown(networkName: string): ConfigurationError {
  const known = NETWORKS.filter(({ explorerApi }) => explorerApi !== undefined);
  const message = `No known explorer accepts the source of contracts on ${networkName}.`;
  const remedy = `Set NET, or use --network, to one of ${known.map(({ name }) => name).join(', ')}.`;
  return new ConfigurationError('EXPLORER_UNKNOWN', message, { remedy });
}

function keyProblem(problem: string, cause?: Error): ConfigurationError {
  const remedy = 'Make one at https://etherscan.io/apidashboard; one key works for all Etherscan explorers.';
  return new ConfigurationError('NOT_CONFIGURED', `ETHERSCAN_API_KEY ${problem}.`, { remedy, cause });
}
