import { ServiceError } from '../../service/errors';
import { infrastructureModule } from '../modules/infrastructure';
import type { DeployContext } from './context';
import { runIgnition } from './ignition';
import { deployedAddresses, dropJournal, infrastructureJournal } from './journals';
import { publishedContractsOf } from './published-contracts';
import { hasCode, isStale } from './stale-journal';

/** How a contract came to be where it is. */
export type Status = 'deployed' | 'already there' | 'published';

/** What registries of a chain are made with. */
export interface Infrastructure {
  readonly titleEscrowFactory: string;
  readonly tokenImplementation: string;
  readonly deployer: string;
  readonly status: Status;
}

/** The chain's infrastructure: the published one where there is one, else our own, deployed if it is not there. */
export async function provideInfrastructure(context: DeployContext): Promise<Infrastructure> {
  const infrastructure =
    publishedInfrastructure(context) ??
    (await existingInfrastructure(context)) ??
    (await deployInfrastructure(context));
  await checkInfrastructure(context, infrastructure);
  return infrastructure;
}

function publishedInfrastructure({ chain, target }: DeployContext): Infrastructure | undefined {
  const published = target.isLocal ? undefined : publishedContractsOf(chain.chainId);
  return published && { ...published, status: 'published' };
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

async function deployInfrastructure(context: DeployContext): Promise<Infrastructure> {
  context.say(
    `Deploying the title escrow factory, the registry's implementation and the deployer on ${context.target.name} …`,
  );
  const contracts = await runIgnition(context, {
    module: infrastructureModule,
    journal: infrastructureJournal(context.journalsRoot, context.chain),
  });
  const [titleEscrowFactory, tokenImplementation, deployer] = await Promise.all([
    contracts.titleEscrowFactory.getAddress(),
    contracts.tokenImplementation.getAddress(),
    contracts.deployer.getAddress(),
  ]);
  return { titleEscrowFactory, tokenImplementation, deployer, status: 'deployed' };
}

/** No address is reported on Ignition's or the package's word alone. */
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

function unsound({ target }: DeployContext, problem: string): ServiceError {
  const remedy = `Check that the node at ${target.node} is in sync and of ${target.name}, then run the command again.`;
  return new ServiceError('DEPLOYMENT_INCONSISTENT', `On ${target.name}, ${problem}.`, { remedy });
}

/** Whether two addresses are the same, however they are capitalised. */
export function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
