import { task } from 'hardhat/config';
import { makeBindings } from '../contract-bindings';
import { withExitCode } from '../exit-code';

interface Arguments {
  file: string;
  remark?: string;
  json: boolean;
}

/**
 * `npx hardhat decrypt-remark`: the remarks of a token in clear. Exit code 1: nothing to decrypt with this
 * credential, 2: could not tell.
 */
task('decrypt-remark', "Shows the remarks of a credential's token in clear")
  .addPositionalParam('file', 'The credential, or the answer of POST /create; - for standard input')
  .addOptionalParam(
    'remark',
    'One remark, as an event has it: 0x… (default: all of the token, from its chain)',
  )
  .addFlag('json', 'As JSON')
  .setAction(async ({ file, remark, json }: Arguments, hre) => {
    await withExitCode(hre.hardhatArguments, async () => {
      await makeBindings(hre);
      const { showRemarks } = require('../token/show-remarks') as typeof import('../token/show-remarks');
      const { lines, isReadable } = await showRemarks({ file, remark, json });
      for (const line of lines) console.log(line);
      return isReadable;
    });
  });
