import { AbiCoder, type Signer } from 'ethers';
import {
  ERC1967Proxy__factory,
  TitleEscrowFactory__factory,
  TradeTrustTokenStandard__factory,
  type TitleEscrowFactory,
  type TradeTrustTokenStandard,
} from '../../../typechain-types';
import { hre } from './in-process-chain';

/** A role of the registry. Its account has no other role. */
export type RegistryRole = 'admin' | 'minter' | 'restorer' | 'accepter';

/** A registry on Hardhat's in-process chain: every call takes a few milliseconds. */
export interface InProcessRegistry {
  registry: TradeTrustTokenStandard;
  factory: TitleEscrowFactory;
  roles: Record<RegistryRole, Signer>;
  /** Accounts without any role. */
  persons: Signer[];
}

/**
 * Deploys the real contracts without the deployer contract, and gives each role of the registry to an account
 * of its own.
 */
export async function createRegistryInProcess(): Promise<InProcessRegistry> {
  const [admin, minter, restorer, accepter, ...persons] = await hre.ethers.getSigners();
  if (!admin || !minter || !restorer || !accepter) throw new Error('the node has too few accounts');
  const factory = await new TitleEscrowFactory__factory(admin).deploy();
  const implementation = await new TradeTrustTokenStandard__factory(admin).deploy();
  const coder = AbiCoder.defaultAbiCoder();
  const names = coder.encode(['string', 'string', 'address'], ['Bills', 'BL', admin.address]);
  const parameters = coder.encode(['bytes', 'address'], [names, await factory.getAddress()]);
  const initialize = implementation.interface.encodeFunctionData('initialize', [parameters]);
  const proxy = await new ERC1967Proxy__factory(admin).deploy(implementation, initialize);
  const registry = TradeTrustTokenStandard__factory.connect(await proxy.getAddress(), admin);
  const grants = [
    [await registry.MINTER_ROLE(), minter],
    [await registry.RESTORER_ROLE(), restorer],
    [await registry.ACCEPTER_ROLE(), accepter],
  ] as const;
  for (const [role, account] of grants) {
    await registry.grantRole(role, account.address);
    await registry.renounceRole(role, admin.address);
  }
  return { registry, factory, roles: { admin, minter, restorer, accepter }, persons };
}
