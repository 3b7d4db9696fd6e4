import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { CREDENTIAL_FILE, examples } from './arguments';

/** `tdoc derive`. */
export function addDerive(program: Command): void {
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
    .action(async (file: string, { reveal, out }: { reveal: string[]; out?: string }, command: Command) =>
      withExitCode(command, async () => {
        const { deriveFile } =
          require('../verification/derive-file') as typeof import('../verification/derive-file');
        const { output, remarks } = await deriveFile({ file, pointers: reveal, out });
        for (const line of remarks) console.error(line);
        for (const line of output) console.log(line);
        return true;
      }),
    );
}
