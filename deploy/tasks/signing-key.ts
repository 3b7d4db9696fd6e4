import { task } from 'hardhat/config';
import { runTdoc } from '../../cli/program';

interface Arguments {
  force: boolean;
  publicKeyFile?: string;
}

/** `npx hardhat signing-key`: an alias of `npx tdoc signing-key`. */
task('signing-key', 'Makes the key that signs webhooks: the same as npx tdoc signing-key')
  .addFlag('force', 'Replace an existing key: subscribers then need the new public key')
  .addOptionalParam('publicKeyFile', 'File for the public key (default: webhook-public-key.pem)')
  .setAction(({ force, publicKeyFile: file }: Arguments) =>
    runTdoc(['signing-key', ...(force ? ['--force'] : []), ...(file ? ['--public-key-file', file] : [])]),
  );
