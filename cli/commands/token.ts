import type { Command } from 'commander';
import { withExitCode } from '../exit-code';
import { examples, JSON_FLAG, NETWORK, REGISTRY, TOKEN, wholeNumber } from './arguments';

interface Options {
  registry?: string;
  network?: string;
  fromBlock?: number;
  json?: true;
}

/** `tdoc token`. Exit code 1: the token is not minted. */
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
    .action(async (token: string, { registry, network, fromBlock, json }: Options, command: Command) =>
      withExitCode(command, async () => {
        const { showToken } = require('../token/show-token') as typeof import('../token/show-token');
        const { lines, isMinted } = await showToken({
          token,
          registry,
          network,
          fromBlock,
          json: json === true,
        });
        for (const line of lines) console.log(line);
        return isMinted;
      }),
    );
}
