import type { Command } from 'commander';
import { printAnswer } from '../exit-code';
import { examples, JSON_FLAG, NETWORK, REGISTRY } from './arguments';

interface ListOptions {
  role?: string;
  account?: string;
  registry?: string;
  network?: string;
  json?: true;
}

type ChangeOptions = ListOptions & { role: string; account: string; force?: true };

const ROLE = 'minter, accepter, restorer or admin';

/** `tdoc role grant`, `revoke` and `list`. */
export function addRole(program: Command): void {
  const role = program
    .command('role')
    .summary('grant, revoke and list the roles of the registry')
    .description(
      'Grants, revokes and lists the roles of the registry: minter, accepter, restorer and admin.',
    );
  role
    .command('grant')
    .description('Grants a role to an account.')
    .requiredOption('--role <role>', ROLE)
    .requiredOption('--account <address>', 'account that gets the role')
    .option(...REGISTRY)
    .option(...NETWORK)
    .option(...JSON_FLAG)
    .addHelpText('after', examples(`role grant --role minter --account ${ACCOUNT}`))
    .action(async (options: ChangeOptions, command: Command) => change('grant', options, command));
  role
    .command('revoke')
    .description('Revokes a role from an account.')
    .requiredOption('--role <role>', ROLE)
    .requiredOption('--account <address>', 'account that loses the role')
    .option(...REGISTRY)
    .option(...NETWORK)
    .option('--force', 'revoke even the last admin: the registry can then never have an admin again')
    .option(...JSON_FLAG)
    .addHelpText('after', examples(`role revoke --role minter --account ${ACCOUNT}`))
    .action(async (options: ChangeOptions, command: Command) => change('revoke', options, command));
  role
    .command('list')
    .description('Lists the accounts that have roles.')
    .option('--role <role>', `this role only: ${ROLE}`)
    .option('--account <address>', 'the roles of this account only')
    .option(...REGISTRY)
    .option(...NETWORK)
    .option(...JSON_FLAG)
    .addHelpText('after', examples('role list', 'role list --role admin --json'))
    .action(async ({ role: only, account, registry, network, json }: ListOptions, command: Command) => {
      await printAnswer(command, json === true, () => {
        const { listRoles } =
          require('../registry-admin/list-roles') as typeof import('../registry-admin/list-roles');
        return listRoles({ role: only, account, registry, network });
      });
    });
}

const ACCOUNT = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';

async function change(
  name: 'grant' | 'revoke',
  { role, account, registry, network, force, json }: ChangeOptions,
  command: Command,
): Promise<void> {
  await printAnswer(command, json === true, (say) => {
    const { changeRole } =
      require('../registry-admin/change-role') as typeof import('../registry-admin/change-role');
    return changeRole(name, { role, account, registry, network, isForced: force === true }, say);
  });
}
