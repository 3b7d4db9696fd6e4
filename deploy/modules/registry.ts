import { buildModule } from '@nomicfoundation/hardhat-ignition/modules';

/**
 * One token registry, created by the chain's deployer. Its address is read from the deployer's `Deployment`
 * event. `initParams` is the ABI encoding of name, symbol and admin (`encodeInitParams` of the registry's
 * package).
 */
export const registryModule = buildModule('Registry', (m) => {
  const deployer = m.contractAt('TDocDeployer', m.getParameter<string>('deployer'), { id: 'Deployer' });
  const parameters = [m.getParameter<string>('tokenImplementation'), m.getParameter<string>('initParams')];
  const deployment = m.call(deployer, 'deploy', parameters);
  const address = m.readEventArgument(deployment, 'Deployment', 'deployed', { emitter: deployer });
  const registry = m.contractAt('TradeTrustTokenStandard', address, { id: 'TokenRegistry' });
  return { registry };
});

export default registryModule;
