import { ConfigurationError, ServiceError } from '../../service/base/errors';
import { infrastructureModule } from '../modules/infrastructure';
import { afford } from './afford';
import type { DeployContext } from './context';
import { runIgnition } from './ignition';
import { estimateInstallation, INSTALLATION_REMARK } from './installation-cost';
import { deployedAddresses, dropJournal, infrastructureJournal } from './journals';
import { publishedContractsOf } from './published-contracts';
import { hasBegun, recoverLost } from './lost-transaction';
import { hasCode, isStale } from './stale-journal';

/** Whether this run deployed a contract, an earlier run did, or TradeTrust published it. */
export type Status = 'deployed' | 'already there' | 'published';

/** The contracts that a chain's registries are made with. */
export interface Infrastructure {
  readonly titleEscrowFactory: string;
  readonly tokenImplementation: string;
  readonly deployer: string;
  readonly status: Status;
}

/**
 * Returns the chain's infrastructure: the published one if there is one, or else our own, deployed if it is
 * missing.
 *
 * @param isWanted whether it may be deployed on a public network.
 * @throws ConfigurationError INFRASTRUCTURE_MISSING, WALLET_NOT_FUNDED; ServiceError DEPLOYMENT_INCONSISTENT,
 *   DEPLOYMENT_FAILED.
 */
export async function provideInfrastructure(
  context: DeployContext,
  isWanted: boolean,
): Promise<Infrastructure> {
  const infrastructure =
    (await publishedInfrastructure(context)) ??
    (await existingInfrastructure(context)) ??
    (await deployInfrastructure(context, isWanted));
  await checkInfrastructure(context, infrastructure);
  if (isWanted && infrastructure.status === 'published') {
    context.say(`The contracts published on ${context.target.name} are used: none had to be installed.`);
  }
  return infrastructure;
}

/**
 * Published addresses without code do not count: an operator's own network may have the id of a public one.
 */
async function publishedInfrastructure({
  chain,
  target,
  request,
}: DeployContext): Promise<Infrastructure | undefined> {
  const published = target.isLocal ? undefined : publishedContractsOf(chain.chainId);
  if (published === undefined) return undefined;
  const addresses = [published.titleEscrowFactory, published.tokenImplementation, published.deployer];
  const codes = await Promise.all(addresses.map((address) => hasCode(request, address)));
  return codes.every(Boolean) ? { ...published, status: 'published' } : undefined;
}

async function existingInfrastructure(context: DeployContext): Promise<Infrastructure | undefined> {
  const { hre, request, target, journalsRoot, chain } = context;
  if (target.network === undefined) return undefined;
  const journal = infrastructureJournal(journalsRoot, chain);
  if (target.isLocal && (await isStale(hre, request, journal))) dropJournal(journal);
  const addresses = deployedAddresses(journal);
  const titleEscrowFactory = addresses['Infrastructure#TitleEscrowFactory'];
  const tokenImplementation = addresses['Infrastructure#TradeTrustTokenStandard'];
  const deployer = addresses['Infrastructure#Deployer'];
  if (!titleEscrowFactory || !tokenImplementation || !deployer) return undefined;
  const existing: Infrastructure = {
    titleEscrowFactory,
    tokenImplementation,
    deployer,
    status: 'already there',
  };
  const factory = await registeredFactory(context, existing);
  return isSame(factory, titleEscrowFactory) ? existing : undefined;
}

async function deployInfrastructure(context: DeployContext, isWanted: boolean): Promise<Infrastructure> {
  const { target } = context;
  const journal = infrastructureJournal(context.journalsRoot, context.chain);
  await recoverLost(context, journal);
  const isBegun = await hasBegun(context, journal);
  if (!target.isLocal && !isWanted && !isBegun) throw missing(context);
  await afford(context, () => estimateInstallation(context, deployedAddresses(journal)), INSTALLATION_REMARK);
  context.say(
    `Deploying the title escrow factory, the registry's implementation and the deployer on ${target.name} …`,
  );
  const contracts = await runIgnition(context, {
    module: infrastructureModule,
    journal,
  });
  const [titleEscrowFactory, tokenImplementation, deployer] = await Promise.all([
    contracts.titleEscrowFactory.getAddress(),
    contracts.tokenImplementation.getAddress(),
    contracts.deployer.getAddress(),
  ]);
  return { titleEscrowFactory, tokenImplementation, deployer, status: 'deployed' };
}

/** Reads every address from the chain: the word of Ignition or of the package is not enough. */
async function checkInfrastructure(context: DeployContext, infrastructure: Infrastructure): Promise<void> {
  const { titleEscrowFactory, tokenImplementation, deployer } = infrastructure;
  for (const address of [titleEscrowFactory, tokenImplementation, deployer]) {
    if (!(await hasCode(context.request, address)))
      throw unsound(context, `there is no contract at ${address}`);
  }
  const factory = await registeredFactory(context, infrastructure);
  if (isSame(factory, titleEscrowFactory)) return;
  throw unsound(context, `the deployer ${deployer} does not know the implementation ${tokenImplementation}`);
}

async function registeredFactory({ hre }: DeployContext, infrastructure: Infrastructure): Promise<string> {
  const deployer = await hre.ethers.getContractAt('TDocDeployer', infrastructure.deployer);
  return deployer.implementations(infrastructure.tokenImplementation).catch(() => '');
}

function missing({ chain, target }: DeployContext): ConfigurationError {
  const published = publishedContractsOf(chain.chainId);
  const problem =
    published === undefined
      ? `TradeTrust publishes no v5 contracts on ${target.name} (chain ${chain.chainId})`
      : `The node at ${target.node} has no contract where TradeTrust publishes v5 on ${target.name} ` +
        `(deployer ${published.deployer}): it is not in sync, ` +
        `or belongs to another chain with the id ${chain.chainId}`;
  const remedy =
    'To install deployer, implementation and factory of your own there, add --with-infrastructure.';
  return new ConfigurationError('INFRASTRUCTURE_MISSING', `${problem}. Nothing was sent.`, { remedy });
}

function unsound({ target }: DeployContext, problem: string): ServiceError {
  const remedy =
    `Check that the node at ${target.node} is in sync and of ${target.name}, ` +
    'then run the command again.';
  return new ServiceError('DEPLOYMENT_INCONSISTENT', `On ${target.name}, ${problem}.`, { remedy });
}

/** Compares two addresses regardless of case. */
export function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
