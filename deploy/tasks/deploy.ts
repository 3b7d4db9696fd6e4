import { task } from 'hardhat/config';
import { deployRegistry, type RegistryDeployment } from '../registry/deploy-registry';
import { withReadableErrors } from '../task-error';

interface Arguments {
  tokenName?: string;
  tokenSymbol?: string;
  new: boolean;
  withInfrastructure: boolean;
}

/**
 * `npx hardhat deploy`: deploys a token registry, and the contracts it needs, on the network of NET or of
 * `--network`. Returns the addresses, so that tests and scripts can `hre.run('deploy')`.
 */
task('deploy', 'Deploys a token registry through the deployer contract and writes TOKEN_REGISTRY_ADDRESS')
  .addOptionalParam('tokenName', 'Name of the token')
  .addOptionalParam('tokenSymbol', 'Symbol of the token')
  .addFlag('new', 'Make another registry even if there is one')
  .addFlag('withInfrastructure', 'Install deployer, implementation and factory if none is published')
  .setAction(async (options: Arguments, hre): Promise<RegistryDeployment> => {
    const { tokenName, tokenSymbol, new: isNew, withInfrastructure } = options;
    return withReadableErrors(hre.hardhatArguments, () =>
      deployRegistry(hre, { tokenName, tokenSymbol, isNew, withInfrastructure }),
    );
  });
