import type { Command } from 'commander';
import type { Time } from '../../service/base/time';
import { answering } from '../answer';
import type { CheckOptions, CollectOptions } from '../evidence/evidence';
import type { VerifyOptions } from '../credentials/verify-and-derive';
import type { ShowTokenOptions } from '../token/show-token';
import {
  CREDENTIAL_FILE,
  examples,
  JSON_FLAG,
  NETWORK,
  REGISTRY,
  TOKEN,
  wholeNumber,
  wholeNumbers,
} from './arguments';

const validation = () => require('../credentials/validate') as typeof import('../credentials/validate');
const verification = () =>
  require('../credentials/verify-and-derive') as typeof import('../credentials/verify-and-derive');
const tokens = () => require('../token/show-token') as typeof import('../token/show-token');
const evidence = () => require('../evidence/evidence') as typeof import('../evidence/evidence');
const states = () => require('../token/show-states') as typeof import('../token/show-states');

/**
 * Commands that read a document or its token: `tdoc validate`, `verify-credential`, `derive`, `token`,
 * `evidence`, `check-evidence`, `decrypt-remark` and `states`.
 */
export function addCredentialCommands(program: Command, time: Time): void {
  program.commandsGroup('Credentials and their tokens:');
  program
    .command('validate')
    .summary('check a Bill of Lading before it is signed')
    .description('Checks the credentialSubject of a Bill of Lading.')
    .argument(
      '<file>',
      'A credentialSubject, the body of a POST /create, or a credential; - is standard input',
    )
    .option('--context <file>', "a context of the issuer's own: examine it, and take its terms")
    .option(...JSON_FLAG)
    .addHelpText('after', examples('validate subject.json', 'validate - --json < subject.json'))
    .action(
      answering(
        (file: string, options: { context?: string }) => () => validation().validateFile(file, options),
      ),
    );
  program
    .command('verify-credential')
    .summary('verify the integrity, the issuer and the status of a credential')
    .description('Verifies a credential: its integrity, its issuer, and the state of its token.')
    .argument('<file>', CREDENTIAL_FILE)
    .option(
      '--reveal <pointer...>',
      'disclose these JSON pointers only (a base credential; default: everything)',
    )
    .option('--trust-context <url...>', 'URLs of additional contexts to trust')
    .option(...JSON_FLAG)
    .addHelpText(
      'after',
      examples(
        'verify-credential credential.json',
        'verify-credential credential.json --reveal /credentialSubject/scac',
      ),
    )
    .action(
      answering(
        (file: string, options: VerifyOptions) => () => verification().verifyFile(time, file, options),
      ),
    );
  program
    .command('derive')
    .summary('derive a version of a credential that discloses parts of it')
    .description('Derives a version of a credential that discloses only the named and the mandatory parts.')
    .argument('<file>', CREDENTIAL_FILE)
    .requiredOption('--reveal <pointer...>', 'JSON pointers to disclose')
    .option('--out <file>', 'file to write (default: standard output)')
    .addHelpText(
      'after',
      examples('derive credential.json --reveal /credentialSubject/blNumber --out shown.json'),
    )
    .action(
      answering(
        (file: string, options: { reveal: string[]; out?: string }) => () =>
          verification().deriveFile(time, file, options),
      ),
    );
  program
    .command('token')
    .summary("show a token's endorsement chain and its state")
    .description(
      "Shows a token's endorsement chain (who had it, when, with which remark) and its current state.",
    )
    .argument('<token>', TOKEN)
    .option(...REGISTRY)
    .option(...NETWORK)
    .option('--from-block <n>', 'read no logs before this block', wholeNumber)
    .option(...JSON_FLAG)
    .addHelpText('after', examples('token credential.json', 'token 42 --network amoy --json'))
    .action(
      answering((token: string, options: ShowTokenOptions) => () => tokens().showToken(time, token, options)),
    );
  program
    .command('evidence')
    .summary('collect evidence of a document into a file')
    .description('Collects proofs of what happened to a token, and the document if it is given, into a file.')
    .argument('<token>', TOKEN)
    .option('--out <file>', 'file to write', 'evidence.json')
    .option('--html <file>', 'page for readers to write')
    .option('--state-at <block...>', 'prove the state at these blocks too', wholeNumbers)
    .option('--deliveries', "add the deliveries of the events, from the service's database")
    .option(...REGISTRY)
    .option(...NETWORK)
    .option(...JSON_FLAG)
    .addHelpText('after', examples('evidence answer.json --html evidence.html', 'evidence 42 --network amoy'))
    .action(
      answering(
        (token: string, options: CollectOptions) => () => evidence().collectIntoFile(time, token, options),
      ),
    );
  program
    .command('check-evidence')
    .summary('check a file of evidence, without a network')
    .description('Checks a file of `tdoc evidence`. Only with --rpc-url is anybody asked: for block hashes.')
    .argument('<file>', 'The file of `tdoc evidence`; - is standard input')
    .option('--rpc-url <url...>', 'nodes that are asked for the hashes of the blocks')
    .option('--html <file>', 'page for readers to write')
    .option('--all', 'print every statement')
    .option(...JSON_FLAG)
    .addHelpText('after', examples('check-evidence evidence.json', 'check-evidence evidence.json --all'))
    .action(answering((file: string, options: CheckOptions) => () => evidence().checkFile(file, options)));
  program
    .command('decrypt-remark')
    .summary("decrypt the remarks of a credential's token")
    .description("Decrypts the remarks of a credential's token.")
    .argument('<file>', CREDENTIAL_FILE)
    .option('--remark <hex>', 'one remark in hex, as in an event: 0x… (default: all remarks of the token)')
    .option(...JSON_FLAG)
    .addHelpText('after', examples('decrypt-remark credential.json'))
    .action(
      answering(
        (file: string, options: { remark?: string }) => () => tokens().showRemarks(time, file, options),
      ),
    );
  program
    .command('states')
    .summary('compute the state of each token from a file of events')
    .description(
      'Computes the state of each token from events and their retractions, without a node or a database.',
    )
    .argument('<file>', 'Events as JSON Lines, as the reference receiver stores them; - is standard input')
    .option('--json', 'print one JSON object for each token')
    .addHelpText('after', examples('states .receiver/received-events.jsonl'))
    .action(answering((file: string) => () => states().showStates(file)));
}
