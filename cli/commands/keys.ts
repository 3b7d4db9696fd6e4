import type { Command } from 'commander';
import type { Answer } from '../answer';
import { printAnswer } from '../exit-code';
import type { MadeKey } from '../keys/made-key';
import { printableJson } from '../terminal/printable';
import { examples, JSON_FLAG } from './arguments';

interface DidOptions {
  force?: true;
  check?: true;
  json?: true;
}

interface SigningKeyOptions {
  force?: true;
  publicKeyFile?: string;
  json?: true;
}

/** `tdoc setup`, `tdoc did` and `tdoc signing-key`. `did --check` exits with 1 if something differs. */
export function addKeys(program: Command): void {
  program
    .command('setup')
    .summary('make missing keys and list missing settings')
    .description(
      "Makes the issuer's did:web key pair and the key that signs webhooks if they are missing, " +
        'and lists missing settings.',
    )
    .option(...JSON_FLAG)
    .addHelpText('after', examples('setup'))
    .action(async ({ json }: { json?: true }, command: Command) =>
      printAnswer(command, json === true, (say) => {
        const { setUp } = require('../keys/set-up') as typeof import('../keys/set-up');
        return setUp(say);
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
    .option(...JSON_FLAG)
    .addHelpText('after', examples('did', 'did --check'))
    .action(async ({ force, check, json }: DidOptions, command: Command) =>
      printAnswer(command, json === true, async () => {
        const isForced = { force: force === true };
        if (check) {
          const { checkDid } = require('../keys/check-did') as typeof import('../keys/check-did');
          const { areEqual, ...answer } = await checkDid(isForced);
          return { ...answer, isYes: areEqual };
        }
        const { makeDidKey } = require('../keys/make-did-key') as typeof import('../keys/make-did-key');
        return answerOf(await makeDidKey(isForced));
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
    .option(...JSON_FLAG)
    .addHelpText('after', examples('signing-key'))
    .action(async ({ force, publicKeyFile, json }: SigningKeyOptions, command: Command) =>
      printAnswer(command, json === true, async () => {
        const { makeSigningKey } =
          require('../keys/make-signing-key') as typeof import('../keys/make-signing-key');
        return answerOf(await makeSigningKey({ force: force === true, publicKeyFile }));
      }),
    );
}

function answerOf({ lines, json }: MadeKey): Answer {
  return { lines, json: printableJson(json), isYes: true };
}
