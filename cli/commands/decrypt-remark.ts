import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { CREDENTIAL_FILE, examples, JSON_FLAG } from './arguments';

/** `tdoc decrypt-remark`. Exit code 1: this credential decrypts no remark. */
export function addDecryptRemark(program: Command): void {
  program
    .command('decrypt-remark')
    .summary("show the remarks of a credential's token in clear")
    .description("Shows the remarks of a credential's token in clear.")
    .argument('<file>', CREDENTIAL_FILE)
    .option(
      '--remark <hex>',
      'one remark, as an event has it: 0x… (default: all of the token, from its chain)',
    )
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
