import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { CREDENTIAL_FILE, examples, JSON_FLAG } from './arguments';

/** `tdoc decrypt-remark`. Exit code 1: this credential decrypts no remark. */
export function addDecryptRemark(program: Command): void {
  program
    .command('decrypt-remark')
    .summary("decrypt the remarks of a credential's token")
    .description("Decrypts the remarks of a credential's token.")
    .argument('<file>', CREDENTIAL_FILE)
    .option('--remark <hex>', 'one remark in hex, as in an event: 0x… (default: all remarks of the token)')
    .option(...JSON_FLAG)
    .addHelpText('after', examples('decrypt-remark credential.json'))
    .action(async (file: string, { remark, json }: { remark?: string; json?: true }, command: Command) =>
      withExitCode(command, async () => {
        const { showRemarks } = require('../token/show-remarks') as typeof import('../token/show-remarks');
        const { lines, isReadable } = await showRemarks({ file, remark, json: json === true });
        for (const line of lines) console.log(line);
        return isReadable;
      }),
    );
}
