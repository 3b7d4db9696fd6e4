import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import { commandFor } from '../../service/config/tenant';
import type { DeployContext } from './context';
import type { Infrastructure } from './infrastructure';
import { deployedAddresses, infrastructureJournal } from './journals';

/** A contract's name, its address and its constructor arguments. */
type Deployed = readonly [name: string, address: string, ...args: string[]];

/**
 * The commands that publish the source of our own infrastructure contracts on the network's explorer, one a
 * line. The registry is a clone of its implementation and has no source of its own.
 */
export async function verification(
  context: DeployContext,
  infrastructure: Infrastructure,
): Promise<string[]> {
  const { hre, target, tenant } = context;
  const { network } = target;
  if (network?.explorerApi === undefined || infrastructure.status === 'published') return [];
  const commands = (await deployedContracts(context, infrastructure)).map(async ([name, ...words]) => {
    const contract = `--contract ${await qualifiedName(hre, name)}`;
    const task = `hardhat verify --network ${network.name} ${contract} ${words.join(' ')}`;
    return `  ${commandFor(tenant.envFile, task)}`;
  });
  const need = network.explorerApi === 'etherscan' ? ' (needs ETHERSCAN_API_KEY)' : '';
  return [
    `To show the source of these contracts on ${network.explorerUrl}${need}:`,
    ...(await Promise.all(commands)),
  ];
}

async function deployedContracts(
  { hre, chain, journalsRoot }: DeployContext,
  { titleEscrowFactory, tokenImplementation, deployer }: Infrastructure,
): Promise<Deployed[]> {
  const addresses = deployedAddresses(infrastructureJournal(journalsRoot, chain));
  const logic = addresses['Infrastructure#DeployerImplementation'] ?? '';
  const factory = await hre.ethers.getContractAt('TitleEscrowFactory', titleEscrowFactory);
  const { interface: ofDeployer } = await hre.ethers.getContractAt('TDocDeployer', deployer);
  return [
    ['TitleEscrowFactory', titleEscrowFactory],
    ['TitleEscrow', await factory.implementation()],
    ['TradeTrustTokenStandard', tokenImplementation],
    ['TDocDeployer', logic],
    ['ERC1967Proxy', deployer, logic, ofDeployer.encodeFunctionData('initialize')],
  ];
}

/** "file:contract". Without it hardhat-verify slowly compares every contract of the project. */
async function qualifiedName({ artifacts }: HardhatRuntimeEnvironment, name: string): Promise<string> {
  const { sourceName, contractName } = await artifacts.readArtifact(name);
  return `${sourceName}:${contractName}`;
}
