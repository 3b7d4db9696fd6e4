import { zeroPadValue, type JsonRpcProvider } from 'ethers';
import type { PublishedContracts } from '../deploy/registry/published-contracts';
import {
  ERC1967Proxy__factory,
  TDocDeployer__factory,
  TitleEscrowFactory__factory,
  TradeTrustTokenStandard__factory,
} from '../typechain-types';
import { registryMaker, type RegistryMaker } from './installed-registry';

/** EIP-1967: the slot where a proxy keeps the address of its implementation. */
const IMPLEMENTATION_SLOT = '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc';

/** A call of Hardhat's node that changes the state outside of any block. */
export type ChangeState = (method: string, params: unknown[]) => Promise<unknown>;

/** The part of a result of `waitForDeployment` that is needed here. */
interface Deployed {
  getDeployedCode(): Promise<string | null>;
}

/**
 * Makes a local node a stand-in for a public network. The v5 contracts are deployed anywhere, and their code,
 * with its immutable values, is copied to the addresses where TradeTrust publishes them.
 *
 * @param change makes the calls that change the state outside of any block.
 * @returns what makes registries with them, whose admin is the node's first account.
 */
export async function publishContracts(
  chain: JsonRpcProvider,
  published: PublishedContracts,
  change: ChangeState = (method, params) => chain.send(method, params),
): Promise<RegistryMaker> {
  const signer = await chain.getSigner(0);
  const put = async (address: string, from: Deployed): Promise<void> => {
    await change('hardhat_setCode', [address, await from.getDeployedCode()]);
  };
  const factory = await new TitleEscrowFactory__factory(signer).deploy();
  await put(published.titleEscrowFactory, await factory.waitForDeployment());
  // The factory's only variable: the title escrow of which all others are clones.
  const escrow = await chain.getStorage(await factory.getAddress(), 0);
  await change('hardhat_setStorageAt', [published.titleEscrowFactory, '0x0', escrow]);
  const token = await new TradeTrustTokenStandard__factory(signer).deploy();
  await put(published.tokenImplementation, await token.waitForDeployment());
  const logic = await (await new TDocDeployer__factory(signer).deploy()).waitForDeployment();
  const logicAddress = await logic.getAddress();
  const proxy = await new ERC1967Proxy__factory(signer).deploy(logicAddress, '0x');
  await put(published.deployer, await proxy.waitForDeployment());
  const slot = zeroPadValue(logicAddress, 32);
  await change('hardhat_setStorageAt', [published.deployer, IMPLEMENTATION_SLOT, slot]);
  const deployer = TDocDeployer__factory.connect(published.deployer, signer);
  await (await deployer.initialize()).wait();
  const { tokenImplementation, titleEscrowFactory } = published;
  await (await deployer.addImplementation(tokenImplementation, titleEscrowFactory)).wait();
  return registryMaker(deployer, tokenImplementation, signer.address);
}
