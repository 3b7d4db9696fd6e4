import type { Command } from 'commander';
import { answering } from '../answer';
import type { ShowTokenOptions } from '../token/show-token';
import { CREDENTIAL_FILE, examples, JSON_FLAG, NETWORK, REGISTRY, TOKEN, wholeNumber } from './arguments';

const load = () => require('../token/show-token') as typeof import('../token/show-token');

/** `tdoc token` and `tdoc decrypt-remark`. */
export function addToken(program: Command): void {
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
    .action(answering((token: string, options: ShowTokenOptions) => () => load().showToken(token, options)));
  program
    .command('decrypt-remark')
    .summary("decrypt the remarks of a credential's token")
    .description("Decrypts the remarks of a credential's token.")
    .argument('<file>', CREDENTIAL_FILE)
    .option('--remark <hex>', 'one remark in hex, as in an event: 0x… (default: all remarks of the token)')
    .option(...JSON_FLAG)
    .addHelpText('after', examples('decrypt-remark credential.json'))
    .action(
      answering((file: string, options: { remark?: string }) => () => load().showRemarks(file, options)),
    );
}
