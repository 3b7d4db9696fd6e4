import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { CREDENTIAL_FILE, examples, JSON_FLAG } from './arguments';

interface Options {
  reveal?: string[];
  trustContext?: string[];
  json?: true;
}

/** `tdoc verify-credential`. Exit code 1: invalid. */
export function addVerifyCredential(program: Command): void {
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
    .action(async (file: string, { reveal, trustContext = [], json }: Options, command: Command) =>
      withExitCode(command, async () => {
        const { verifyFile } =
          require('../verification/verify-file') as typeof import('../verification/verify-file');
        const { output, errors, isValid } = await verifyFile({
          file,
          pointers: reveal,
          trustedContexts: trustContext,
          json: json === true,
        });
        for (const line of errors) console.error(line);
        for (const line of output) console.log(line);
        return isValid;
      }),
    );
}
