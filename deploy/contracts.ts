import { ContractFactory, Interface, ZeroAddress } from 'ethers';
import { ConfigurationError, ServiceError } from '../service/base/errors';
import { publishedContractsOf, type PublishedContracts } from './published-contracts';
import { afford, readSent, sendOnce, type Sender, type Step } from './send-once';

/** The contracts that a chain's registries are made with. */
export interface Infrastructure extends PublishedContracts {
  /** Whether this run deployed them, an earlier run did, or TradeTrust published them. */
  readonly status: 'deployed' | 'already there' | 'published';
  /** The contract behind the deployer's proxy, unless it is published. */
  readonly logic?: string;
}

/** Sends a step, and returns the address of the contract that it creates. */
type Send = (step: Step) => Promise<string>;

const FIRST_STEP = 'title-escrow-factory';
const LAST_STEP = 'add-implementation';

/** Gas of calls that no node can estimate before the contracts exist, measured on Hardhat's chain. */
const DEPENDENT_GAS: Record<string, bigint> = { deployer: 210_000n, [LAST_STEP]: 60_000n };
const REGISTRY_GAS = 400_000n;

/**
 * Returns the chain's infrastructure: the published one if there is one, or else our own, which is installed
 * if it is missing.
 *
 * @param isWanted whether it may be installed on a public network.
 * @throws ConfigurationError INFRASTRUCTURE_MISSING, WALLET_NOT_FUNDED; ServiceError DEPLOYMENT_INCONSISTENT,
 *   DEPLOYMENT_FAILED.
 */
export async function provideInfrastructure(sender: Sender, isWanted: boolean): Promise<Infrastructure> {
  const infrastructure = (await publishedOn(sender)) ?? (await installedOn(sender, isWanted));
  const { titleEscrowFactory, tokenImplementation, deployer, status } = infrastructure;
  // The chain is asked: the word of a file or of the package is not enough.
  const contract = await sender.hre.ethers.getContractAt('TDocDeployer', deployer);
  const factory: string = await contract.implementations(tokenImplementation).catch(() => '');
  if (!isSame(factory, titleEscrowFactory))
    throw inconsistent(sender, `there is no deployer at ${deployer} that knows ${tokenImplementation}`);
  if (isWanted && status === 'published')
    sender.say(`The contracts published on ${sender.network.name} are used: none had to be installed.`);
  return infrastructure;
}

/**
 * Published addresses without code do not count: an operator's own network may have the id of a public one.
 */
async function publishedOn(sender: Sender): Promise<Infrastructure | undefined> {
  const published = publishedContractsOf(sender.network.chainId);
  if (published === undefined) return undefined;
  const codes = await Promise.all(
    Object.values<string>({ ...published }).map((address) => hasCode(sender, address)),
  );
  return codes.every(Boolean) ? { ...published, status: 'published' } : undefined;
}

async function installedOn(sender: Sender, isWanted: boolean): Promise<Infrastructure> {
  const { network, say } = sender;
  const isBegun = readSent(sender, FIRST_STEP) !== undefined;
  if (!network.local && !isWanted && !isBegun) throw missing(sender);
  const isComplete = readSent(sender, LAST_STEP)?.created !== undefined;
  if (!isComplete) {
    await afford(sender, await estimate(sender), true);
    say('This is an estimate: the contracts that some transactions call do not exist yet.');
    say('The cost of the registry alone is shown again below.');
    say(`Deploying the title escrow factory, the registry's implementation and the deployer …`);
  }
  const send: Send = async (step) => (await sendOnce(sender, step)).created;
  return { ...(await install(sender, send)), status: isComplete ? 'already there' : 'deployed' };
}

/**
 * The title escrow factory, the registry's implementation, and the deployer behind a proxy, because it is
 * upgradeable (UUPS). `addImplementation` tells the deployer which factory belongs to the implementation.
 */
async function install({ hre: { artifacts } }: Sender, send: Send) {
  const create = async (name: string, contract: string, ...parameters: unknown[]): Promise<string> => {
    const { abi, bytecode } = await artifacts.readArtifact(contract);
    const { data } = await new ContractFactory(abi, bytecode).getDeployTransaction(...parameters);
    return send({ name, to: null, data });
  };
  const { abi } = await artifacts.readArtifact('TDocDeployer');
  const call = (name: string, ...parameters: unknown[]): string =>
    new Interface(abi).encodeFunctionData(name, parameters);
  const titleEscrowFactory = await create(FIRST_STEP, 'TitleEscrowFactory');
  const tokenImplementation = await create('token-implementation', 'TradeTrustTokenStandard');
  const logic = await create('deployer-implementation', 'TDocDeployer');
  const deployer = await create('deployer', 'ERC1967Proxy', logic, call('initialize'));
  const data = call('addImplementation', tokenImplementation, titleEscrowFactory);
  await send({ name: LAST_STEP, to: deployer, data });
  return { titleEscrowFactory, tokenImplementation, deployer, logic };
}

/** Gas of the steps that are not signed yet, and of a registry. */
async function estimate(sender: Sender): Promise<bigint> {
  let gas = REGISTRY_GAS;
  await install(sender, async ({ name, to, data }) => {
    const from = sender.wallet.address;
    if (readSent(sender, name) === undefined)
      gas += DEPENDENT_GAS[name] ?? (await sender.provider.estimateGas({ from, to, data }));
    return ZeroAddress;
  });
  return gas;
}

/** Whether there is a contract at the address. */
export async function hasCode({ provider }: Sender, address: string): Promise<boolean> {
  return (await provider.getCode(address)) !== '0x';
}

/** Compares two addresses regardless of case. */
export function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** The error for a chain that contradicts what is known of it. */
export function inconsistent({ network: { name } }: Sender, problem: string, advice = ''): ServiceError {
  const remedy = `Check that the node is in sync and of ${name}, then run the command again${advice}.`;
  return new ServiceError('DEPLOYMENT_INCONSISTENT', `On ${name}, ${problem}.`, { remedy });
}

function missing({ network: { name, chainId } }: Sender): ConfigurationError {
  const published = publishedContractsOf(chainId);
  const problem =
    published === undefined
      ? `TradeTrust publishes no v5 contracts on ${name} (chain ${chainId})`
      : `The node has no contract where TradeTrust publishes v5 on ${name} ` +
        `(deployer ${published.deployer}): it is not in sync, ` +
        `or belongs to another chain with the id ${chainId}`;
  const remedy =
    'To install deployer, implementation and factory of your own there, add --with-infrastructure.';
  return new ConfigurationError('INFRASTRUCTURE_MISSING', `${problem}. Nothing was sent.`, { remedy });
}
