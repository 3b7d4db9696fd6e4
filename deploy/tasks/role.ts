import { scope } from 'hardhat/config';
import { answerTask } from '../registry-owner/answer-task';
import { JSON_FLAG, REGISTRY } from '../task-arguments';

interface Arguments {
  role: string;
  account: string;
  registry?: string;
  force?: boolean;
  json: boolean;
}

const ROLE = 'minter, accepter, restorer or admin';

/**
 * `npx hardhat role …`: the roles of the registry. Exit code 1: refused (list: nobody has it), 2: failed, or
 * could not tell.
 */
const role = scope(
  'role',
  "The roles of the registry: who may mint, burn, restore, and be the registry's admin",
);

role
  .task('grant', 'Grants a role to an account')
  .addParam('role', ROLE)
  .addParam('account', 'Who gets it')
  .addOptionalParam('registry', REGISTRY)
  .addFlag('json', JSON_FLAG)
  .setAction(async ({ role, account, registry, json }: Arguments, hre) => {
    const { network } = hre.hardhatArguments;
    await answerTask(hre, json, (say) =>
      changer().changeRole('grant', { role, account, registry, network, isForced: false }, say),
    );
  });

role
  .task('revoke', 'Takes a role from an account')
  .addParam('role', ROLE)
  .addParam('account', 'Who loses it')
  .addOptionalParam('registry', REGISTRY)
  .addFlag('force', 'Even from the last admin: the registry is without one for ever')
  .addFlag('json', JSON_FLAG)
  .setAction(async ({ role, account, registry, force: isForced = false, json }: Arguments, hre) => {
    const { network } = hre.hardhatArguments;
    await answerTask(hre, json, (say) =>
      changer().changeRole('revoke', { role, account, registry, network, isForced }, say),
    );
  });

role
  .task('list', 'Lists who has which role')
  .addOptionalParam('role', `Only this one: ${ROLE}`)
  .addOptionalParam('account', 'Only those of this account')
  .addOptionalParam('registry', REGISTRY)
  .addFlag('json', JSON_FLAG)
  .setAction(async ({ role, account, registry, json }: Partial<Arguments>, hre) => {
    const { network } = hre.hardhatArguments;
    await answerTask(hre, json === true, () => {
      const { listRoles } =
        require('../registry-owner/list-roles') as typeof import('../registry-owner/list-roles');
      return listRoles({ role, account, registry, network });
    });
  });

function changer(): typeof import('../registry-owner/change-role') {
  return require('../registry-owner/change-role') as typeof import('../registry-owner/change-role');
}
