import type { Command } from 'commander';
import type { Time } from '../../service/base/time';
import { answering } from '../answer';
import type { OperateOptions } from '../operating/operate-token';
import type { ChangeRoleOptions, ListRolesOptions } from '../registry-admin/manage-roles';
import type { RemarkedOptions } from '../registry-admin/pause-burn-restore';
import { CREDENTIAL, examples, JSON_FLAG, NETWORK, REGISTRY, REMARK, TOKEN, YES } from './arguments';

const roles = () =>
  require('../registry-admin/manage-roles') as typeof import('../registry-admin/manage-roles');
const admin = () =>
  require('../registry-admin/pause-burn-restore') as typeof import('../registry-admin/pause-burn-restore');
const operating = () => require('../operating/operate-token') as typeof import('../operating/operate-token');

/** Commands that send a transaction: `tdoc role`, `pause`, `unpause`, `burn`, `restore` and `operate`. */
export function addRegistryCommands(program: Command, time: Time): void {
  program.commandsGroup('The registry on its chain:');
  addRole(program, time);
  for (const [name, description] of [
    [
      'pause',
      'Pauses the registry: until it is unpaused nobody can mint, transfer, return, restore or burn.',
    ],
    ['unpause', 'Unpauses the registry.'],
  ] as const)
    withRemark(program.command(name))
      .summary(`${name} the registry`)
      .description(description)
      .addHelpText('after', examples(`${name} --remark "stock-taking"`))
      .action(answering((options: RemarkedOptions) => (say) => admin().setPaused(time, name, options, say)));
  for (const [name, summary, description, remark] of [
    [
      'burn',
      'shred a token that was returned to the issuer',
      'Shreds a token that was returned to the issuer. This cannot be undone.',
      'accomplished',
    ],
    [
      'restore',
      'give a returned token back',
      'Gives a token that was returned to the issuer back to its beneficiary and holder.',
      'not accepted',
    ],
  ] as const) {
    const command = withRemark(program.command(name))
      .summary(summary)
      .description(description)
      .argument('<token>', TOKEN)
      .addHelpText('after', examples(`${name} credential.json --remark "${remark}"`))
      .action(
        answering(
          (token: string, options: RemarkedOptions) => (say) =>
            admin().burnOrRestore(time, name, token, options, say),
        ),
      );
    if (name === 'burn') command.option(...YES);
  }
  addOperate(program);
}

function withRemark(command: Command): Command {
  return command
    .option(...REMARK)
    .option(...CREDENTIAL)
    .option(...REGISTRY)
    .option(...NETWORK)
    .option(...JSON_FLAG);
}

const ROLE = 'minter, accepter, restorer or admin';
const ACCOUNT = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';

function addRole(program: Command, time: Time): void {
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
    .action(
      answering((options: ChangeRoleOptions) => (say) => roles().changeRole(time, 'grant', options, say)),
    );
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
    .action(
      answering((options: ChangeRoleOptions) => (say) => roles().changeRole(time, 'revoke', options, say)),
    );
  role
    .command('list')
    .description('Lists the accounts that have roles.')
    .option('--role <role>', `this role only: ${ROLE}`)
    .option('--account <address>', 'the roles of this account only')
    .option(...REGISTRY)
    .option(...NETWORK)
    .option(...JSON_FLAG)
    .addHelpText('after', examples('role list', 'role list --role admin --json'))
    .action(answering((options: ListRolesOptions) => () => roles().listRoles(time, options)));
}

/** Exit code 1: the contract refuses, or the node is not local. */
function addOperate(program: Command): void {
  program
    .command('operate')
    .summary('send an operation of the contracts with an account of a local node')
    .description(
      'Sends an operation of the contracts with an account of a local node: of the devnet that runs in ' +
        'this folder, of --rpc and --registry, or of RPC_URL and TOKEN_REGISTRY_ADDRESS.',
    )
    .argument('<operation>', 'its name in the contracts: transferHolder, nominate, returnToIssuer, pause, …')
    .option('--token <token>', TOKEN)
    .option('--to <account>', 'account that gets the role: its number at the node, or its address')
    .option('--holder <account>', 'of transferOwners: the account that becomes the holder (default: --to)')
    .option('--as <account>', 'account that sends (default: the one that has the right to)')
    .option('--remark <text>', 'at most 120 bytes: text, or hex (0x…)')
    .option('--rpc <url>', 'URL of the node')
    .option('--registry <address>', 'address of the registry')
    .option(...JSON_FLAG)
    .addHelpText(
      'after',
      examples('operate transferHolder --token 42 --to 3 --as 2', 'operate pause --remark "stock-taking"'),
    )
    .action(
      answering(
        (operation: string, options: OperateOptions) => () => operating().operateToken(operation, options),
      ),
    );
}
