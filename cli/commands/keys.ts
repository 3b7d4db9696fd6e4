import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { examples } from './arguments';

interface DidOptions {
  force?: true;
  check?: true;
}

interface SigningKeyOptions {
  force?: true;
  publicKeyFile?: string;
}

/** `tdoc setup`, `tdoc did` and `tdoc signing-key`. `did --check` exits with 1 if something differs. */
export function addKeys(program: Command): void {
  program
    .command('setup')
    .summary('make missing keys and list missing settings')
    .description(
      "Makes the issuer's did:web key pair and the key that signs webhooks if they are missing, and lists missing settings.",
    )
    .addHelpText('after', examples('setup'))
    .action(async (_options: object, command: Command) =>
      withExitCode(command, async () => {
        const { setUp } = require('../keys/set-up') as typeof import('../keys/set-up');
        for await (const line of setUp()) console.log(line);
        return true;
      }),
    );
  program
    .command('did')
    .summary("make the issuer's did:web key pair, or check it")
    .description(
      "Makes the issuer's did:web key pair (DID_KEY_PAIRS) and DID document (did.json) for DOMAIN.",
    )
    .option('--force', 'replace an existing key: credentials that it signed will no longer verify')
    .option('--check', 'make nothing; compare did.json, DID_KEY_PAIRS and the document that DOMAIN serves')
    .addHelpText('after', examples('did', 'did --check'))
    .action(async ({ force, check }: DidOptions, command: Command) =>
      withExitCode(command, async () => {
        const isForced = { force: force === true };
        if (check) {
          const { checkDid } = require('../keys/check-did') as typeof import('../keys/check-did');
          const { areEqual, lines } = await checkDid(isForced);
          for (const line of lines) console.log(line);
          return areEqual;
        }
        const { makeDidKey } = require('../keys/make-did-key') as typeof import('../keys/make-did-key');
        for (const line of await makeDidKey(isForced)) console.log(line);
        return true;
      }),
    );
  program
    .command('signing-key')
    .summary('make the key pair that signs webhooks')
    .description(
      'Makes the key that signs webhooks (SIGNING_PRIVATE_KEY) and the PEM file of its public key.',
    )
    .option('--force', 'replace an existing key: subscribers then need the new public key')
    .option('--public-key-file <file>', 'file for the public key (default: webhook-public-key.pem)')
    .addHelpText('after', examples('signing-key'))
    .action(async ({ force, publicKeyFile }: SigningKeyOptions, command: Command) =>
      withExitCode(command, async () => {
        const { makeSigningKey } =
          require('../keys/make-signing-key') as typeof import('../keys/make-signing-key');
        const lines = await makeSigningKey({ force: force === true, publicKeyFile });
        for (const line of lines) console.log(line);
        return true;
      }),
    );
}
