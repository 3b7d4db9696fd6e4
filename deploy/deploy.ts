import { join } from 'node:path';
import { utils } from '@tradetrust-tt/token-registry';
import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import { maskSecrets } from '../cli/errors';
import { setEnvValue, shadowWarning } from '../cli/files/env-file';
import { withFileLock } from '../cli/files/write-file';
import { addressLink, feesAfter, readNetworkFees, transactionLink } from '../cli/transactions';
import { ConfigurationError, messageOf, ServiceError } from '../service/base/errors';
import { PROJECT_ROOT } from '../service/base/project-root';
import type { Time } from '../service/base/time';
import type { TransactionFees } from '../service/chain/transactions';
import type { Network } from '../service/chain/networks';
import { readSettings } from '../service/config/config';
import { walletKeyOf } from '../service/config/key-settings';
import { rpcUrlsOf, settingOf, type Settings } from '../service/config/settings';
import { tenantOf } from '../service/config/tenant';
import { hasCode, inconsistent, isSame, provideInfrastructure, type Infrastructure } from './contracts';
import { sayVerification } from './explorers';
import { checkNode, networkOf, walletOf } from './networks';
import { leftBehind } from './registry-before';
import { forgetMissing, originHash, readSent, sendOnce, writeSent, type Sender } from './send-once';

/** The command's arguments. */
export interface Wanted {
  readonly tokenName?: string;
  readonly tokenSymbol?: string;
  readonly new: boolean;
  readonly withInfrastructure: boolean;
}

/** A command for one tenant. `file`: that of its newest registry's transaction. */
interface Deployment extends Sender {
  readonly wanted: Wanted;
  readonly envFile: string;
  readonly settings: Settings;
  readonly file: string;
}

/** A token registry. `transaction`: the hash of its deployment, if this command waited for it. */
interface Registry {
  readonly address: string;
  readonly isNew: boolean;
  readonly transaction?: string | undefined;
}

const SETTING = 'TOKEN_REGISTRY_ADDRESS';
const DEFAULT_NAME = 'Transferable Documents';
const DEFAULT_SYMBOL = 'TDOC';
/** Another command on the same chain may be waiting for a block. */
const PATIENCE_MS = 60_000;
const OR_NEW = ', or make another registry with --new';

/**
 * Makes sure that the tenant has a token registry on the network of NET, or on that of `--network`, writes
 * its address into ENV_FILE, and prints the result. Running it again changes nothing.
 */
export async function deploy(time: Time, hre: HardhatRuntimeEnvironment, wanted: Wanted): Promise<void> {
  const { envFile, settings } = readSettings();
  const network = networkOf(hre.network.name, settings);
  const wallet = walletOf(network, settings);
  await checkNode(network, settings);
  await hre.run('compile', { quiet: true });
  const { provider } = hre.ethers;
  let fees: Promise<TransactionFees> | undefined;
  try {
    const folder = join(PROJECT_ROOT, 'deploy/deployments', await chainFolder(hre, network, settings));
    const deployment: Deployment = {
      hre,
      time,
      network,
      provider,
      wallet,
      folder,
      async fees(refusal = '') {
        const offered = await (fees ??= readNetworkFees(time, network, settings, () =>
          provider.getFeeData(),
        ));
        fees = Promise.resolve(feesAfter(refusal, offered) ?? offered);
        return fees;
      },
      say: (line) => console.log(line),
      wanted,
      envFile,
      settings,
      file: `registry-${tenantOf(envFile).key}`,
    };
    await withFileLock(folder, () => provideAll(deployment), PATIENCE_MS);
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    const reason = maskSecrets(messageOf(cause)).replace(/\s*\n\s*/g, ' ');
    const remedy = 'Run the command again: it continues where it stopped.';
    const message = `The deployment on ${network.name} failed: ${reason}`;
    throw new ServiceError('DEPLOYMENT_FAILED', message, { cause, remedy });
  }
}

/**
 * The folder of a chain's transactions. A private chain may have the id of a public one, but not its block 0.
 * A local node has another chain after each start: `forgetMissing` empties its folder then.
 */
async function chainFolder(
  { ethers }: HardhatRuntimeEnvironment,
  network: Network,
  settings: Settings,
): Promise<string> {
  const { chainId, local } = network;
  if (local)
    return `chain-${chainId}-${new URL(rpcUrlsOf(network, settings)[0]).host.replace(/[^\w.]/g, '-')}`;
  const hash = await originHash(ethers);
  // In another folder, an earlier run's transactions would not be found.
  if (hash === undefined) throw withoutBlock0(network);
  return `chain-${chainId}-${hash.slice(2, 14)}`;
}

function withoutBlock0({ name }: Network): ServiceError {
  const message =
    `The node of ${name} does not have block 0, so it is not certain whether an earlier run deployed on ` +
    'the same chain. Nothing was sent.';
  const remedy = 'Set RPC_URL to a node that has it for this command. The service does without it.';
  return new ServiceError('DEPLOYMENT_FAILED', message, { remedy });
}

async function provideAll(deployment: Deployment): Promise<void> {
  const { network, wanted, envFile } = deployment;
  if (network.local) await forgetMissing(deployment);
  const infrastructure = await provideInfrastructure(deployment, wanted.withInfrastructure);
  const registry = await provideRegistry(deployment, infrastructure);
  await sayTable(deployment, infrastructure, registry);
  await save(deployment, registry);
  await sayHints(deployment, registry);
  await sayVerification(deployment, envFile, infrastructure);
}

/** Finds the tenant's registry, finishes the one that an interrupted run began, or makes one. */
async function provideRegistry(deployment: Deployment, infrastructure: Infrastructure): Promise<Registry> {
  const { hre, wallet, wanted, file } = deployment;
  const { deployer, tokenImplementation } = infrastructure;
  const { tokenName = DEFAULT_NAME, tokenSymbol = DEFAULT_SYMBOL } = wanted;
  const known = await knownRegistry(deployment, infrastructure);
  if (known !== undefined && !wanted.new) return { address: known, isNew: false };
  const { interface: ofDeployer } = await hre.ethers.getContractAt('TDocDeployer', deployer);
  const init = { name: tokenName, symbol: tokenSymbol, deployer: wallet.address };
  const parameters: [string, string] = [tokenImplementation, utils.encodeInitParams(init) as string];
  const step = {
    name: file,
    effect: `the registry "${tokenName}" (${tokenSymbol})`,
    to: deployer,
    data: ofDeployer.encodeFunctionData('deploy', parameters),
  };
  const { created, hash } = await sendOnce(deployment, step, known !== undefined);
  return { address: created, isNew: true, transaction: hash };
}

/**
 * The registry that an earlier run has reported. On public networks TOKEN_REGISTRY_ADDRESS also counts,
 * because the run may have been on another machine. On a local chain the address may belong to another
 * contract after a restart.
 */
async function knownRegistry(
  deployment: Deployment,
  { titleEscrowFactory }: Infrastructure,
): Promise<string | undefined> {
  const { network, wanted, settings, file } = deployment;
  const sent = readSent(deployment, file);
  if (sent !== undefined) return sent.isReported ? sent.created : undefined;
  const address = wanted.new ? undefined : settingOf(settings, SETTING);
  if (network.local || address === undefined || !(await hasCode(deployment, address))) return undefined;
  const factory = await factoryOf(deployment, address);
  // Fail rather than pay for another registry only because a node did not answer.
  if (factory === '')
    throw inconsistent(deployment, `the title escrow factory of ${address} cannot be read`, OR_NEW);
  return isSame(factory, titleEscrowFactory) ? address : undefined;
}

async function factoryOf({ hre }: Deployment, address: string): Promise<string> {
  const registry = await hre.ethers.getContractAt('TradeTrustTokenStandard', address);
  return registry.titleEscrowFactory().catch(() => '');
}

/**
 * Prints the contracts and their addresses. Name and symbol are read from the chain: an address without a
 * registry of this infrastructure is never reported.
 *
 * @throws ServiceError DEPLOYMENT_INCONSISTENT; ConfigurationError REGISTRY_DIFFERS.
 */
async function sayTable(
  deployment: Deployment,
  { titleEscrowFactory, tokenImplementation, deployer, status }: Infrastructure,
  { address, isNew, transaction }: Registry,
): Promise<void> {
  const { hre, network, say, wanted } = deployment;
  if (!isSame(await factoryOf(deployment, address), titleEscrowFactory)) {
    markReported(deployment);
    const problem = `there is no registry with the title escrow factory ${titleEscrowFactory} at ${address}`;
    throw inconsistent(deployment, problem, OR_NEW);
  }
  const contract = await hre.ethers.getContractAt('TradeTrustTokenStandard', address);
  const [name, symbol] = await Promise.all([contract.name(), contract.symbol()]);
  const { tokenName = name, tokenSymbol = symbol } = wanted;
  const title = `"${name}" (${symbol})`;
  if (tokenName !== name || tokenSymbol !== symbol) {
    markReported(deployment);
    const message = `The registry ${address} is ${title}, and a token's name cannot be changed.`;
    throw new ConfigurationError('REGISTRY_DIFFERS', message, {
      remedy: 'Make another registry with --new.',
    });
  }
  say(`\n${title} on ${network.name}, chain ${network.chainId}`);
  say(`  title escrow factory  ${titleEscrowFactory}  ${status}`);
  say(`  token implementation  ${tokenImplementation}  ${status}`);
  say(`  deployer              ${deployer}  ${status}`);
  say(`  token registry        ${address}  ${isNew ? 'deployed' : 'already deployed'}\n`);
  const link = addressLink(network, address);
  if (link !== undefined) say(`registry     ${link}`);
  const transactionPage = transaction && transactionLink(network, transaction);
  if (transactionPage !== undefined) say(`transaction  ${transactionPage}`);
}

/** Writes the registry's address into ENV_FILE, and warns of what follows from the change. */
async function save(deployment: Deployment, { address }: Registry): Promise<void> {
  const { say, envFile, settings } = deployment;
  const before = settingOf(settings, SETTING);
  const isChanged = before !== undefined && !isSame(before, address);
  await setEnvValue(envFile, SETTING, address);
  markReported(deployment);
  say(`${SETTING} is in ${envFile}${isChanged ? ` (it was ${before})` : ''}.`);
  const warning = shadowWarning(SETTING, address);
  if (warning !== undefined) say(warning);
  if (isChanged) for (const line of await leftBehind(envFile, settings, before)) say(line);
}

/** Lets a later --new make another registry: the operator knows of this one. */
function markReported(deployment: Deployment): void {
  const sent = readSent(deployment, deployment.file);
  if (sent !== undefined) writeSent(deployment, deployment.file, { ...sent, isReported: true });
}

/** Prints the steps that are left before the service can mint in this registry. */
async function sayHints(deployment: Deployment, { address }: Registry): Promise<void> {
  const { hre, network, wallet, say, envFile, settings } = deployment;
  const file = tenantOf(envFile).isDefault ? '.env' : envFile;
  const { name, chainId } = settingOf(settings, 'NET');
  if (chainId !== network.chainId) {
    const wrong = `NET is ${name} (${chainId}), but this registry is on chain ${network.chainId}`;
    say(`hint: ${wrong}: set NET=${network.chainId} in ${file}`);
  }
  if (walletKeyOf(settings) === undefined) {
    say(`hint: deployed with the first account of Hardhat's nodes, ${wallet.address}.`);
    say(`  The service needs WALLET_PRIVATE_KEY of a minter: set it in ${file} to that account's key,`);
    say('  which `npx hardhat node` prints.');
    return;
  }
  const contract = await hre.ethers.getContractAt('TradeTrustTokenStandard', address);
  if (await contract.hasRole(await contract.MINTER_ROLE(), wallet.address)) return;
  say(`hint: the wallet ${wallet.address} has no minter role in this registry:`);
  say('  its admin must grant the role, or make a registry of your own with --new.');
}
