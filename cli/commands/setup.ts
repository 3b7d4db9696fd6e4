import { join } from 'node:path';
import { Option, type Command } from 'commander';
import { PROJECT_ROOT } from '../../service/base/project-root';
import { answering, type Answer, type Say } from '../answer';
import { examples, JSON_FLAG, YES } from './arguments';

const keys = () => require('../keys/make-keys') as typeof import('../keys/make-keys');
const list = () => require('../keys/list-keys') as typeof import('../keys/list-keys');
const did = () => require('../keys/check-did') as typeof import('../keys/check-did');
const rotation = () => require('../keys/rotate-did') as typeof import('../keys/rotate-did');
const check = () => require('../check/check-service') as typeof import('../check/check-service');

const PROGRAMS = {
  service: 'start the service: issue documents over HTTP, deliver events to the webhook',
  receiver: 'start the reference receiver of webhooks',
  devnet: 'start a local chain, the service and the receiver, for tests',
} as const;

interface DidOptions {
  rotate?: true;
  revoke?: string;
  check?: true;
  force?: true;
  yes?: true;
}

/** An option of `tdoc did` that excludes the others. */
function didOption(flags: string, description: string): Option {
  const option = new Option(flags, description);
  const others = ['rotate', 'revoke', 'check', 'force'].filter((name) => name !== option.attributeName());
  return option.conflicts(others);
}

function answerDid({ rotate, revoke, check: isCheck, force, yes }: DidOptions, say: Say): Promise<Answer> {
  if (rotate) return rotation().rotateDidKey();
  if (revoke !== undefined) return rotation().revokeDidKey(revoke, { yes }, say);
  return isCheck ? did().checkDid() : keys().makeDidKey({ ...(force && { force }) });
}

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
    .option('--pkcs11', "make the wallet's and the issuer's key inside the module of PKCS11_MODULE")
    .option(...JSON_FLAG)
    .addHelpText('after', examples('setup', 'setup --pkcs11'))
    .action(answering((options: { pkcs11?: true }) => (say) => keys().setUp(options, say)));
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
    .summary("make, replace, revoke and check the issuer's did:web keys")
    .description(
      "Makes the issuer's did:web key pair (DID_KEY_PAIRS) and DID document (did.json) for DOMAIN.",
    )
    .addOption(didOption('--rotate', 'make the next key; earlier ones stay in did.json for their documents'))
    .addOption(didOption('--revoke <key>', 'take a key out of did.json: its documents no longer verify'))
    .addOption(didOption('--check', 'make nothing; compare the key, did.json and what DOMAIN serves'))
    .addOption(didOption('--force', 'begin anew with one key: documents of others will no longer verify'))
    .option(...YES)
    .option(...JSON_FLAG)
    .addHelpText('after', examples('did', 'did --rotate', 'did --revoke keys-1', 'did --check'))
    .action(answering((options: DidOptions) => (say) => answerDid(options, say)));
  program
    .command('keys')
    .summary('list the keys: where each is, its public part, and what it may do')
    .description(
      'Lists the keys of the settings: where each is, its public part, what it may do there, and whether ' +
        'it can sign now.',
    )
    .option('--retry', 'try the PIN of the module again, although it was refused')
    .option(...JSON_FLAG)
    .addHelpText('after', examples('keys', 'keys --retry'))
    .action(answering((options: { retry?: true }) => () => list().listKeys(options)));
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
