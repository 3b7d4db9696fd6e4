import { task } from 'hardhat/config';
import { runTdoc } from '../../cli/program';

interface Arguments {
  force: boolean;
  check: boolean;
}

/** `npx hardhat did`: an alias of `npx tdoc did`. */
task('did', "Makes the issuer's did:web key pair (DID_KEY_PAIRS) and DID document: the same as npx tdoc did")
  .addFlag('force', 'Replace an existing key: credentials that it signed will no longer verify')
  .addFlag('check', 'Make nothing; compare did.json, DID_KEY_PAIRS and the document that DOMAIN serves')
  .setAction(({ force, check }: Arguments) =>
    runTdoc(['did', ...(force ? ['--force'] : []), ...(check ? ['--check'] : [])]),
  );
