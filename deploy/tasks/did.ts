import { task } from 'hardhat/config';
import { makeDidKey } from '../keys/make-did-key';
import { withReadableErrors } from '../task-error';

/** `npx hardhat did`: the issuer's did:web key pair and did.json, for DOMAIN. */
task('did', "Makes the issuer's did:web key pair (DID_KEY_PAIRS) and DID document (did.json) for DOMAIN")
  .addFlag('force', 'Replace a key that is there: credentials that it signed will no longer verify')
  .setAction(async ({ force }: { force: boolean }, hre) => {
    const lines = await withReadableErrors(hre.hardhatArguments, () => makeDidKey({ force }));
    for (const line of lines) console.log(line);
  });
