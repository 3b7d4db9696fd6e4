import { task } from 'hardhat/config';
import { runTdoc } from '../../cli/program';

interface Arguments {
  force: boolean;
  publicKeyFile?: string;
}

/** `npx hardhat signing-key`: an alias of `npx tdoc signing-key`. */
task('signing-key', 'Makes the key that signs webhooks: the same as npx tdoc signing-key')
  .addFlag('force', 'Replace a key that is there: subscribers then need the new public key')
  .addOptionalParam('publicKeyFile', 'Where the public key goes (default: webhook-public-key.pem)')
  .setAction(({ force, publicKeyFile: file }: Arguments) =>
    runTdoc(['signing-key', ...(force ? ['--force'] : []), ...(file ? ['--public-key-file', file] : [])]),
  );
