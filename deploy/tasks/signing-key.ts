import { task } from 'hardhat/config';
import { makeSigningKey } from '../keys/make-signing-key';
import { withReadableErrors } from '../task-error';

interface Arguments {
  force: boolean;
  publicKeyFile?: string;
}

/** `npx hardhat signing-key`: the Ed25519 key pair that signs webhooks. */
task(
  'signing-key',
  'Makes the key that signs webhooks (SIGNING_PRIVATE_KEY) and the PEM file of its public key',
)
  .addFlag('force', 'Replace a key that is there: subscribers then need the new public key')
  .addOptionalParam('publicKeyFile', 'Where the public key goes (default: webhook-public-key.pem)')
  .setAction(async ({ force, publicKeyFile }: Arguments, hre) => {
    const lines = await withReadableErrors(hre.hardhatArguments, () =>
      makeSigningKey({ force, publicKeyFile }),
    );
    for (const line of lines) console.log(line);
  });
