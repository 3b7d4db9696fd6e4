import { join } from 'node:path';
import type { Command } from 'commander';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { answering } from '../answer';
import { examples, JSON_FLAG } from './arguments';

const keys = () => require('../keys/make-keys') as typeof import('../keys/make-keys');
const did = () => require('../keys/check-did') as typeof import('../keys/check-did');
const check = () => require('../check/check-service') as typeof import('../check/check-service');

const PROGRAMS = {
  service: 'start the service: issue documents over HTTP, deliver events to the webhook',
  receiver: 'start the reference receiver of webhooks',
  devnet: 'start a local chain, the service and the receiver, for tests',
} as const;

/** `tdoc setup`, `check`, `did` and `signing-key`, and the programs that `tdoc` starts. */
export function addSetupCommands(program: Command): void {
  program.commandsGroup('Set up and run:');
  program
    .command('setup')
    .summary('make missing keys and list missing settings')
    .description(
      "Makes the issuer's did:web key pair and the key that signs webhooks if they are missing, " +
        'and lists missing settings.',
    )
    .option(...JSON_FLAG)
    .addHelpText('after', examples('setup'))
    .action(answering(() => (say) => keys().setUp(say)));
  program
    .command('check')
    .summary('check settings, nodes, wallet, registries, DID, webhook and database')
    .description(
      'Checks what the service needs: its settings, nodes, registries, wallet, DID document, webhook and ' +
        'database. Changes nothing.',
    )
    .option('--send-test-event', "send a signed test event to the settings' webhooks")
    .option(...JSON_FLAG)
    .addHelpText('after', examples('check', 'check --send-test-event --json'))
    .action(answering((options: { sendTestEvent?: true }) => () => check().checkService(options)));
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
    .action(
      answering(
        (options: { force?: true; check?: true }) => () =>
          options.check ? did().checkDid(options) : keys().makeDidKey(options),
      ),
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
    .action(
      answering((options: { force?: true; publicKeyFile?: string }) => () => keys().makeSigningKey(options)),
    );
  for (const name of Object.keys(PROGRAMS) as (keyof typeof PROGRAMS)[]) {
    // These programs parse their own arguments, including `--help`.
    program
      .command(name)
      .description(PROGRAMS[name])
      .helpOption(false)
      .allowUnknownOption()
      .argument('[arguments...]')
      .action((args: string[]) => {
        process.argv.splice(2, Infinity, ...args);
        require(join(PROJECT_ROOT, 'dist', name, 'main.js'));
      });
  }
}
