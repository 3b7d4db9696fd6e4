import { task, types } from 'hardhat/config';
import { makeBindings } from '../contract-bindings';

interface Arguments {
  file: string;
  pointers: string[];
  reveal: boolean;
  trustContext?: string;
  json: boolean;
}

/** `npx hardhat verify-credential`: integrity, issuer and status of a credential. */
task('verify-credential', 'Verifies a credential: its integrity, its issuer, and the state of its token')
  .addPositionalParam('file', 'The credential, or the answer of POST /create; - for standard input')
  .addOptionalVariadicPositionalParam('pointers', 'After --reveal: JSON pointers', [], types.string)
  .addFlag('reveal', 'Disclose only what the pointers after it name (a base credential; default: everything)')
  .addOptionalParam('trustContext', 'URLs of further contexts whose meaning you know, separated by spaces')
  .addFlag('json', 'One JSON object')
  .setAction(async ({ trustContext, ...options }: Arguments, hre) => {
    await makeBindings(hre);
    const { verifyFile } =
      require('../verification/verify-file') as typeof import('../verification/verify-file');
    const { output, errors, exitCode } = await verifyFile({ ...options, trustContext });
    for (const line of errors) console.error(line);
    for (const line of output) console.log(line);
    process.exitCode = exitCode;
  });
