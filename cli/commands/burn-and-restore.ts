import type { Command } from 'commander';
import { printAnswer } from '../exit-code';
import {
  CREDENTIAL,
  examples,
  JSON_FLAG,
  NETWORK,
  REGISTRY,
  REMARK,
  TOKEN,
  YES,
  type AdminOptions,
} from './arguments';

type Options = AdminOptions & { yes?: true };

/** `tdoc burn` and `tdoc restore`, for tokens that were returned to the issuer. */
export function addBurnAndRestore(program: Command): void {
  program
    .command('burn')
    .summary('shred a token that was returned to the issuer')
    .description('Shreds a token that was returned to the issuer. This cannot be undone.')
    .argument('<token>', TOKEN)
    .option(...REMARK)
    .option(...CREDENTIAL)
    .option(...REGISTRY)
    .option(...NETWORK)
    .option(...YES)
    .option(...JSON_FLAG)
    .addHelpText(
      'after',
      examples('burn credential.json --credential credential.json --remark "accomplished"'),
    )
    .action(async (token: string, { yes, ...options }: Options, command: Command) =>
      run('burn', token, options, yes === true, command),
    );
  program
    .command('restore')
    .summary('give a returned token back')
    .description('Gives a token that was returned to the issuer back to its beneficiary and holder.')
    .argument('<token>', TOKEN)
    .option(...REMARK)
    .option(...CREDENTIAL)
    .option(...REGISTRY)
    .option(...NETWORK)
    .option(...JSON_FLAG)
    .addHelpText(
      'after',
      examples('restore credential.json --credential credential.json --remark "not accepted"'),
    )
    .action(async (token: string, options: AdminOptions, command: Command) =>
      run('restore', token, options, true, command),
    );
}

async function run(
  name: 'burn' | 'restore',
  token: string,
  { remark, credential, registry, network, json }: AdminOptions,
  isAgreed: boolean,
  command: Command,
): Promise<void> {
  await printAnswer(command, json === true, (say) => {
    const { burnOrRestore } =
      require('../registry-admin/burn-or-restore') as typeof import('../registry-admin/burn-or-restore');
    return burnOrRestore(name, { token, registry, network, remark, credential, isAgreed }, say);
  });
}
