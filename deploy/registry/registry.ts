import { utils } from '@tradetrust-tt/token-registry';
import { ConfigurationError, ServiceError } from '../../service/base/errors';
import { registryModule } from '../modules/registry';
import { afford, estimateGas } from './afford';
import type { DeployContext } from './context';
import { runIgnition } from './ignition';
import { isSame, type Infrastructure, type Status } from './infrastructure';
import {
  deployedAddresses,
  dropJournal,
  newestRegistry,
  readNote,
  registryJournal,
  type Journal,
} from './journals';
import { hasBegun, recoverLost } from './lost-transaction';
import { hasCode, isStale, sentTransactions } from './stale-journal';

/** The user's request. */
export interface RegistryRequest {
  readonly tokenName: string | undefined;
  readonly tokenSymbol: string | undefined;
  readonly isNew: boolean;
}

/**
 * A token registry on the chain. `transaction`: the hash of its deployment, if this command or an interrupted
 * one before it sent that.
 */
export interface Registry {
  readonly address: string;
  readonly name: string;
  readonly symbol: string;
  readonly status: Status;
  readonly transaction?: string | undefined;
}

const DEFAULT_NAME = 'Transferable Documents';
const DEFAULT_SYMBOL = 'TDOC';

/**
 * Returns the tenant's registry: the newest one, or a new one if `isNew` asks for it or there is none.
 *
 * @param knownAddress TOKEN_REGISTRY_ADDRESS, for public chains whose journal was lost (another machine, a
 *   fresh clone).
 */
export async function provideRegistry(
  context: DeployContext,
  infrastructure: Infrastructure,
  wanted: RegistryRequest,
  knownAddress: string | undefined,
): Promise<Registry> {
  if (context.target.network === undefined) return deployNew(context, infrastructure, wanted, 1);
  const newest = await newestUsable(context, infrastructure);
  if (wanted.isNew) return deployNew(context, infrastructure, wanted, newest + 1);
  if (newest === 0) {
    const known = await adopted(context, infrastructure, knownAddress);
    if (known === undefined) return deployNew(context, infrastructure, wanted, 1);
    return read(context, infrastructure, known, 'already there', wanted);
  }
  const journal = registryJournal(context.journalsRoot, context.chain, context.tenant, newest);
  const address = registryAddress(journal);
  if (address === undefined) return resume(context, infrastructure, wanted, newest);
  return read(context, infrastructure, address, 'already there', wanted);
}

/**
 * Number of the newest registry whose journal matches the chain; 0 if there is none. On local chains journals
 * that do not match are dropped.
 */
async function newestUsable(context: DeployContext, infrastructure: Infrastructure): Promise<number> {
  const { hre, request, target, journalsRoot, chain, tenant } = context;
  for (
    let n = newestRegistry(journalsRoot, chain, tenant);
    n > 0;
    n = newestRegistry(journalsRoot, chain, tenant)
  ) {
    const journal = registryJournal(journalsRoot, chain, tenant, n);
    if (!target.isLocal) return n;
    const address = registryAddress(journal);
    const isOfOurs =
      address === undefined || isSame(await factoryOf(context, address), infrastructure.titleEscrowFactory);
    if (isOfOurs && !(await isStale(hre, request, journal))) return n;
    dropJournal(journal);
  }
  return 0;
}

/** Finishes an interrupted run with the parameters that it started with. */
async function resume(
  context: DeployContext,
  infrastructure: Infrastructure,
  wanted: RegistryRequest,
  n: number,
) {
  const note = readNote(registryJournal(context.journalsRoot, context.chain, context.tenant, n));
  const { tokenName = wanted.tokenName, tokenSymbol = wanted.tokenSymbol } = note ?? {};
  return deployNew(context, infrastructure, { ...wanted, tokenName, tokenSymbol }, n);
}

async function deployNew(
  context: DeployContext,
  infrastructure: Infrastructure,
  wanted: RegistryRequest,
  n: number,
): Promise<Registry> {
  const tokenName = wanted.tokenName ?? DEFAULT_NAME;
  const tokenSymbol = wanted.tokenSymbol ?? DEFAULT_SYMBOL;
  const init = { name: tokenName, symbol: tokenSymbol, deployer: context.account };
  const initParams = utils.encodeInitParams(init) as string;
  const journal = registryJournal(context.journalsRoot, context.chain, context.tenant, n);
  const { hre, say, target } = context;
  await recoverLost(context, journal);
  const isSent = await hasBegun(context, journal);
  if (!isSent) await afford(context, () => estimateDeployment(context, infrastructure, initParams));
  const { deployer, tokenImplementation } = infrastructure;
  say(
    isSent
      ? `Resuming the registry "${tokenName}" (${tokenSymbol}) on ${target.name}: ` +
          'its transaction was sent earlier …'
      : `Deploying the registry "${tokenName}" (${tokenSymbol}) on ${target.name} …`,
  );
  const { registry } = await runIgnition(context, {
    module: registryModule,
    journal,
    parameters: { Registry: { deployer, tokenImplementation, initParams } },
    note: { tokenName, tokenSymbol },
  });
  const deployed = await read(context, infrastructure, await registry.getAddress(), 'deployed', wanted);
  return { ...deployed, transaction: (await sentTransactions(hre, journal))?.at(-1) };
}

/** Gas of exactly the call that Ignition is going to send. */
async function estimateDeployment(
  context: DeployContext,
  { deployer, tokenImplementation }: Infrastructure,
  initParams: string,
): Promise<bigint> {
  const contract = await context.hre.ethers.getContractAt('TDocDeployer', deployer);
  const data = contract.interface.encodeFunctionData('deploy', [tokenImplementation, initParams]);
  return estimateGas(context, { to: deployer, data });
}

/**
 * Reads the registry from the chain. An address without a registry of this infrastructure is never reported.
 */
async function read(
  context: DeployContext,
  infrastructure: Infrastructure,
  address: string,
  status: Status,
  wanted: RegistryRequest,
): Promise<Registry> {
  const { hre, request, target } = context;
  if (!(await hasCode(request, address)))
    throw unusable(address, `there is no contract there on ${target.name}`);
  if (!isSame(await factoryOf(context, address), infrastructure.titleEscrowFactory)) {
    throw unusable(address, `its title escrow factory is not ${infrastructure.titleEscrowFactory}`);
  }
  const contract = await hre.ethers.getContractAt('TradeTrustTokenStandard', address);
  const [name, symbol] = await Promise.all([contract.name(), contract.symbol()]);
  const differs = (wanted.tokenName ?? name) !== name || (wanted.tokenSymbol ?? symbol) !== symbol;
  if (!differs) return { address, name, symbol, status };
  const message =
    `The registry ${address} on ${target.name} is "${name}" (${symbol}), ` +
    "and a token's name cannot be changed.";
  throw new ConfigurationError('REGISTRY_DIFFERS', message, { remedy: 'Make another registry with --new.' });
}

/**
 * Uses a known registry of a public network. On a local chain the address may belong to another contract
 * after a restart.
 */
async function adopted(
  context: DeployContext,
  infrastructure: Infrastructure,
  address: string | undefined,
): Promise<string | undefined> {
  const { target, request } = context;
  if (target.isLocal || address === undefined || !(await hasCode(request, address))) return undefined;
  const factory = await factoryOf(context, address);
  // Fail rather than pay for another registry only because a node did not answer.
  if (factory === '') throw unusable(address, 'its title escrow factory cannot be read');
  return isSame(factory, infrastructure.titleEscrowFactory) ? address : undefined;
}

async function factoryOf({ hre }: DeployContext, address: string): Promise<string> {
  const registry = await hre.ethers.getContractAt('TradeTrustTokenStandard', address);
  return registry.titleEscrowFactory().catch(() => '');
}

function registryAddress(journal: Journal): string | undefined {
  return deployedAddresses(journal)['Registry#TokenRegistry'];
}

function unusable(address: string, problem: string): ServiceError {
  const remedy = 'Check RPC_URL, or make another registry with --new.';
  return new ServiceError('DEPLOYMENT_INCONSISTENT', `The registry ${address} cannot be used: ${problem}.`, {
    remedy,
  });
}
