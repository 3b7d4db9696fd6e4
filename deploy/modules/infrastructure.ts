import { buildModule } from '@nomicfoundation/hardhat-ignition/modules';

/**
 * The contracts that registries are made with, once per chain: the title escrow factory, the registry's
 * implementation, and the deployer behind a proxy, because it is upgradeable (UUPS). `addImplementation`
 * tells the deployer which factory belongs to the implementation. Only for chains without a published
 * deployer.
 */
export const infrastructureModule = buildModule('Infrastructure', (m) => {
  const titleEscrowFactory = m.contract('TitleEscrowFactory');
  const tokenImplementation = m.contract('TradeTrustTokenStandard');
  const deployerImplementation = m.contract('TDocDeployer', [], { id: 'DeployerImplementation' });
  const initialize = m.encodeFunctionCall(deployerImplementation, 'initialize', []);
  const proxy = m.contract('ERC1967Proxy', [deployerImplementation, initialize], { id: 'DeployerProxy' });
  const deployer = m.contractAt('TDocDeployer', proxy, { id: 'Deployer' });
  m.call(deployer, 'addImplementation', [tokenImplementation, titleEscrowFactory]);
  return { titleEscrowFactory, tokenImplementation, deployer };
});

export default infrastructureModule;
