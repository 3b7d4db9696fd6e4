import { task, types } from 'hardhat/config';
import { makeBindings } from '../contract-bindings';
import { withExitCode } from '../exit-code';
import { REGISTRY, TOKEN } from '../task-arguments';

interface Arguments {
  token: string;
  registry?: string;
  fromBlock?: number;
  json: boolean;
}

/**
 * `npx hardhat token`: a token's endorsement chain and its state. Exit code 1: not minted, 2: could not tell.
 */
task('token', "Shows a token's endorsement chain (who had it, when, with which remark) and its state now")
  .addPositionalParam('token', TOKEN)
  .addOptionalParam('registry', REGISTRY)
  .addOptionalParam('fromBlock', 'Nothing earlier is read', undefined, types.int)
  .addFlag('json', 'One JSON object')
  .setAction(async ({ token, registry, fromBlock, json }: Arguments, hre) => {
    await withExitCode(hre.hardhatArguments, async () => {
      await makeBindings(hre);
      const { showToken } = require('../token/show-token') as typeof import('../token/show-token');
      const { network } = hre.hardhatArguments;
      const { lines, isMinted } = await showToken({ token, registry, network, fromBlock, json });
      for (const line of lines) console.log(line);
      return isMinted;
    });
  });
