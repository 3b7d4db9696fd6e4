import type { Command } from 'commander';
import { printAnswer } from '../exit-code';
import type { OperateOptions } from '../operating/operate-token';
import { examples, JSON_FLAG, TOKEN } from './arguments';

/** `tdoc operate`. Exit code 1: the contract refuses, or the node is not local. */
export function addOperate(program: Command): void {
  program
    .command('operate')
    .summary('send an operation of the contracts with an account of a local node')
    .description(
      'Sends an operation of the contracts with an account of a local node: of the devnet that runs in ' +
        'this folder, of --rpc and --registry, or of RPC_URL and TOKEN_REGISTRY_ADDRESS.',
    )
    .argument('<operation>', 'its name in the contracts: transferHolder, nominate, returnToIssuer, pause, …')
    .option('--token <token>', TOKEN)
    .option('--to <account>', 'number of an account of the node, or an address: who gets the role')
    .option('--holder <account>', 'of transferOwners: the new holder (default: --to)')
    .option('--as <account>', 'who sends (default: the account that may)')
    .option('--remark <text>', 'at most 120 bytes: text, or hex (0x…)')
    .option('--rpc <url>', 'the node')
    .option('--registry <address>', 'the registry')
    .option(...JSON_FLAG)
    .addHelpText(
      'after',
      examples('operate transferHolder --token 42 --to 3 --as 2', 'operate pause --remark "stock-taking"'),
    )
    .action(
      async (operation: string, { json, ...options }: OperateOptions & { json?: true }, command: Command) =>
        printAnswer(command, json === true, () => {
          const { operateToken } =
            require('../operating/operate-token') as typeof import('../operating/operate-token');
          return operateToken(operation, options);
        }),
    );
}
