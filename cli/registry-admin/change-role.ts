import { ZeroAddress, getAddress } from 'ethers';
import { ConfigurationError } from '../../service/base/errors';
import { registryOf, requireAddress } from '../token/find-token';
import type { Answer, Say } from '../answer';
import { carryOut, nothingToDo, type AdminAction } from './carry-out';
import { asAdmin, type RegistryAdmin } from './registry-admin';
import { hasOtherAdmin } from './read-roles';
import { Refusal } from '../errors';
import { ADMIN_ROLE, roleHashOf } from './role-names';

/** `isForced`: allows removing the last admin. */
export interface ChangeRoleOptions {
  role: string;
  account: string;
  registry: string | undefined;
  network: string | undefined;
  isForced: boolean;
}

interface RoleState {
  hasRole: boolean;
}

/**
 * Grants or revokes a role of the registry. Nothing is sent if the account already has the role, or does not
 * have it.
 */
export async function changeRole(
  command: 'grant' | 'revoke',
  { role, account: text, registry, network, isForced }: ChangeRoleOptions,
  say: Say,
): Promise<Answer> {
  const hash = roleHashOf(role);
  const account = accountOf(text);
  return asAdmin(registryOf(registry, network), async (admin) => {
    const action = actionOf(command, admin, { role, hash, account });
    const before = await action.read();
    if (action.isDone(before)) return nothingToDo(admin, action, before);
    if (command === 'revoke') {
      if (hash === ADMIN_ROLE && !isForced) await keepAnAdmin(admin, account);
      for (const line of warnings(admin, role, account)) say(line);
    }
    return carryOut(admin, action, say);
  });
}

function actionOf(
  command: 'grant' | 'revoke',
  { contract }: RegistryAdmin,
  { role, hash, account }: { role: string; hash: string; account: string },
): AdminAction<RoleState> {
  const isGrant = command === 'grant';
  return {
    name: `role ${command}`,
    doing: isGrant ? `grant ${account} the ${role} role` : `take the ${role} role from ${account}`,
    method: `${command}Role`,
    args: [hash, account],
    about: { role, account },
    read: async (block) => ({
      hasRole: await contract.hasRole(hash, account, { blockTag: block ?? 'latest' }),
    }),
    isDone: ({ hasRole }) => hasRole === isGrant,
    describe: ({ hasRole }) => `${account} ${hasRole ? 'has' : 'does not have'} the ${role} role.`,
  };
}

function accountOf(text: string): string {
  requireAddress('--account', text);
  if (text !== ZeroAddress) return getAddress(text);
  const message = '--account is the zero address, whose key nobody has.';
  throw new ConfigurationError('ARGUMENT_INVALID', message);
}

/** An admin who revokes another account's admin role keeps their own, so the registry keeps an admin. */
async function keepAnAdmin(admin: RegistryAdmin, account: string): Promise<void> {
  const { wallet, contract, flags } = admin;
  if (wallet.address !== account && (await contract.hasRole(ADMIN_ROLE, wallet.address))) return;
  if (await hasOtherAdmin(admin, account)) return;
  const remedy =
    `Grant it to another account first (\`npx tdoc role grant --role admin --account …${flags}\`). ` +
    '--force revokes it anyway.';
  const message =
    `${account} is the last admin of the registry: without one nobody could ever pause it, ` +
    `or grant or revoke a role. ${remedy} Nothing was sent.`;
  throw new Refusal('LAST_ADMIN', message, { remedy });
}

/** Warns a wallet that revokes its own role about the consequence. */
function warnings({ wallet }: RegistryAdmin, role: string, account: string): string[] {
  if (account !== wallet.address) return [];
  if (role === 'admin')
    return [
      'Warning: this is your own wallet: it cannot grant itself the admin role again; another admin can.',
    ];
  if (role === 'minter')
    return ['Warning: this is your own wallet: the service cannot mint with it any more.'];
  return [];
}
