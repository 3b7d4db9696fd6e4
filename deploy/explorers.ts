import type { HardhatUserConfig } from 'hardhat/config';
import { ConfigurationError } from '../service/base/errors';
import { findNetwork, NETWORKS, type ExplorerApi, type Network } from '../service/chain/networks';
import { settingOf, type Settings } from '../service/config/settings';
import { commandFor } from '../service/config/tenant';
import type { Infrastructure } from './contracts';
import { httpRpcUrlOf } from './networks';
import type { Sender } from './send-once';

type Explorers = Pick<HardhatUserConfig, 'blockscout' | 'etherscan' | 'sourcify'>;

/** One URL for all chains: each request names its chain. */
const ETHERSCAN_API_URL = 'https://api.etherscan.io/v2/api';

/** Settings of `hardhat verify` for the networks' explorers. Its task decides which explorer is asked. */
export function explorers({ ETHERSCAN_API_KEY = '' }: Settings): Explorers {
  return {
    etherscan: { apiKey: ETHERSCAN_API_KEY, customChains: chainsOf('etherscan', () => ETHERSCAN_API_URL) },
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
 * Prints the commands that publish the source of our own infrastructure contracts on the network's explorer.
 * The registry is a clone of its implementation and has no source of its own.
 */
export async function sayVerification(
  { hre, network, say }: Sender,
  envFile: string,
  { titleEscrowFactory, tokenImplementation, deployer, logic }: Infrastructure,
): Promise<void> {
  const { name, explorerApi, explorerUrl } = network;
  if (explorerApi === undefined || logic === undefined) return;
  const factory = await hre.ethers.getContractAt('TitleEscrowFactory', titleEscrowFactory);
  const { interface: ofDeployer } = await hre.ethers.getContractAt('TDocDeployer', deployer);
  const need = explorerApi === 'etherscan' ? ' (needs ETHERSCAN_API_KEY)' : '';
  say(`To show the source of these contracts on ${explorerUrl}${need}:`);
  for (const [contract, ...words] of [
    ['TitleEscrowFactory', titleEscrowFactory],
    ['TitleEscrow', await factory.implementation()],
    ['TradeTrustTokenStandard', tokenImplementation],
    ['TDocDeployer', logic],
    ['ERC1967Proxy', deployer, logic, ofDeployer.encodeFunctionData('initialize')],
  ] as const) {
    // Without the file's name hardhat-verify slowly compares every contract of the project.
    const { sourceName } = await hre.artifacts.readArtifact(contract);
    const task = `verify --network ${name} --contract ${sourceName}:${contract} ${words.join(' ')}`;
    say(`  ${commandFor(envFile, `hardhat ${task}`)}`);
  }
}

/**
 * The network, if every setting is present that verifying a contract there needs.
 *
 * @throws ConfigurationError EXPLORER_UNKNOWN, NOT_CONFIGURED, or the code of a wrong setting.
 */
export function networkToVerifyOn(name: string, settings: Settings): Network & { explorerApi: ExplorerApi } {
  settingOf(settings, 'NET');
  const network = findNetwork(name);
  if (network?.explorerApi === undefined) {
    const known = NETWORKS.filter(({ explorerApi }) => explorerApi !== undefined);
    const message = `No known explorer accepts the source of contracts on ${name}.`;
    const remedy = `Set NET, or use --network, to one of ${known.map((one) => one.name).join(', ')}.`;
    throw new ConfigurationError('EXPLORER_UNKNOWN', message, { remedy });
  }
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

function keyProblem(problem: string, cause?: Error): ConfigurationError {
  const remedy = 'Make one at https://etherscan.io/apidashboard; one key works for all Etherscan explorers.';
  return new ConfigurationError('NOT_CONFIGURED', `ETHERSCAN_API_KEY ${problem}.`, { remedy, cause });
}
