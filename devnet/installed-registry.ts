import { utils } from '@tradetrust-tt/token-registry';
import type { JsonRpcProvider } from 'ethers';
import {
  ERC1967Proxy__factory,
  TDocDeployer__factory,
  TitleEscrowFactory__factory,
  TradeTrustTokenStandard__factory,
  type TDocDeployer,
} from '../typechain-types';
import { nodeClient } from './node-client';

/** Makes registries that share a title escrow factory. The chain must mine at once. */
export interface RegistryMaker {
  /** Makes a registry and returns its address. The account `admin` is its admin and may mint. */
  make(): Promise<string>;
}

/**
 * Deploys the contracts of deploy/modules/infrastructure.ts to a local chain that mines at once. It works in
 * this process because the command takes seconds. On a new chain the addresses are always the same. The
 * node's first account is the admin of the registries.
 */
export async function installRegistryMaker(chain: JsonRpcProvider): Promise<RegistryMaker> {
  const signer = await chain.getSigner(0);
  const factory = await new TitleEscrowFactory__factory(signer).deploy();
  const implementation = await new TradeTrustTokenStandard__factory(signer).deploy();
  const logic = await new TDocDeployer__factory(signer).deploy();
  const initialize = logic.interface.encodeFunctionData('initialize');
  const proxy = await new ERC1967Proxy__factory(signer).deploy(logic, initialize);
  const deployer = TDocDeployer__factory.connect(await proxy.getAddress(), signer);
  await (await deployer.addImplementation(implementation, factory)).wait();
  return registryMaker(deployer, await implementation.getAddress(), signer.address);
}

/** Makes registries with a deployer contract that has this implementation. */
export function registryMaker(deployer: TDocDeployer, implementation: string, admin: string): RegistryMaker {
  const init = { name: 'Transferable Documents', symbol: 'TDOC', deployer: admin };
  return {
    async make() {
      const sent = await deployer.deploy(implementation, utils.encodeInitParams(init) as string);
      return addressIn(deployer, (await sent.wait())?.logs ?? []);
    },
  };
}

/**
 * Deploys one registry to the chain of a local node. On a new chain it always has the same address.
 */
export async function installRegistry(nodeUrl: string): Promise<string> {
  const chain = nodeClient(nodeUrl);
  try {
    return await (await installRegistryMaker(chain)).make();
  } finally {
    chain.destroy();
  }
}

function addressIn(
  deployer: TDocDeployer,
  logs: readonly { topics: readonly string[]; data: string }[],
): string {
  const deployment = logs
    .map((log) => deployer.interface.parseLog(log))
    .find((event) => event?.name === 'Deployment');
  if (deployment === undefined) throw new Error('no registry was deployed');
  return String(deployment?.args.deployed);
}
