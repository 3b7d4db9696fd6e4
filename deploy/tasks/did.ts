import { task } from 'hardhat/config';
import { withExitCode } from '../exit-code';
import { checkDid } from '../keys/check-did';
import { makeDidKey } from '../keys/make-did-key';
import { withReadableErrors } from '../task-error';

interface Arguments {
  force: boolean;
  check: boolean;
}

/**
 * `npx hardhat did`: the issuer's did:web key pair and did.json, for DOMAIN; with `--check`, whether all that
 * belongs together does.
 */
task('did', "Makes the issuer's did:web key pair (DID_KEY_PAIRS) and DID document (did.json) for DOMAIN")
  .addFlag('force', 'Replace a key that is there: credentials that it signed will no longer verify')
  .addFlag('check', 'Make nothing; compare did.json, DID_KEY_PAIRS and what DOMAIN serves')
  .setAction(async ({ force, check }: Arguments, hre) => {
    if (check) {
      await withExitCode(hre.hardhatArguments, async () => {
        const { areEqual, lines } = await checkDid({ force });
        for (const line of lines) console.log(line);
        return areEqual;
      });
      return;
    }
    const lines = await withReadableErrors(hre.hardhatArguments, () => makeDidKey({ force }));
    for (const line of lines) console.log(line);
  });
