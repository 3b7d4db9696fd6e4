import { runnerOf } from '../../service/chain/read-state';
import { ZeroAddress, getAddress } from 'ethers';
import type { Time } from '../../service/base/time';
import { readSettings } from '../../service/config/config';
import { walletKeyOf } from '../../service/config/key-settings';
import { openWallet } from '../../service/keys/wallet';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import type { Answer, Say } from '../answer';
import { invalid, Refusal } from '../errors';
import { registryOf, requireAddress, withRegistry } from '../token/find-token';
import { asAdmin, carryOut, nothingToDo, type AdminAction, type RegistryAdmin } from './carry-out';
import { ADMIN_ROLE, hasOtherAdmin, readRoles, roleHashOf, roleNameOf } from './roles';

/** The options of `tdoc role list`; undefined selects all. */
export interface ListRolesOptions {
  role?: string;
  account?: string;
  registry?: string;
  network?: string;
}

/**
 * Lists the accounts that have roles of the registry. The answer is yes if any account matches the filters.
 */
export async function listRoles(time: Time, options: ListRolesOptions): Promise<Answer> {
  const hash = options.role === undefined ? undefined : roleHashOf(options.role);
  if (options.account !== undefined) requireAddress('--account', options.account);
  const account = options.account === undefined ? undefined : getAddress(options.account);
  const place = registryOf(options.registry, options.network);
  const key = walletKeyOf(readSettings().settings);
  const wallet = key && openWallet(time, key).address;
  return withRegistry(time, place, async (reached) => {
    const contract = TradeTrustTokenStandard__factory.connect(place.registry, runnerOf(reached.client));
    const also = [...new Set([account, wallet])].flatMap((address) => address ?? []);
    const roles = await readRoles({ ...reached, contract }, also);
    const { block } = roles;
    const holders = roles.holders.filter(
      (holder) => (hash ?? holder.role) === holder.role && (account ?? holder.account) === holder.account,
    );
    const roleAdmins = [...roles.adminOf].map(([role, admin]) => {
      return { role: roleNameOf(role), admin: roleNameOf(admin) };
    });
    const { name: network, chainId } = reached.network;
    const registry = getAddress(place.registry);
    const lines = holders.map(({ role, account: holder, sinceBlock, grantedBy }) => {
      const own = holder === wallet ? '  (wallet of the settings)' : '';
      const name = roleNameOf(role).padEnd(8);
      return `  ${name}  ${holder}  since block ${sinceBlock}, granted by ${grantedBy}${own}`;
    });
    return {
      lines: [
        `Roles in registry ${registry} on ${network} (chain id ${chainId}), at block ${block}`,
        ...(lines.length > 0 ? lines : ['  nobody']),
        ...roleAdmins.map(
          ({ role, admin }) =>
            `The ${role} role is granted and revoked by the ${admin} role, not by the admin.`,
        ),
      ],
      json: {
        network,
        chainId,
        registry,
        block,
        holders: holders.map(({ role, ...rest }) => {
          return { role: roleNameOf(role), roleHash: role, ...rest, isWallet: rest.account === wallet };
        }),
        roleAdmins,
      },
      isYes: holders.length > 0,
    };
  });
}

/** The options of `tdoc role grant` and `tdoc role revoke`. `force`: also the role of the last admin. */
export interface ChangeRoleOptions {
  role: string;
  account: string;
  registry?: string;
  network?: string;
  force?: true;
}

/**
 * Grants or revokes a role of the registry. Nothing is sent if the account already has the role, or does not
 * have it.
 */
export async function changeRole(
  time: Time,
  command: 'grant' | 'revoke',
  { role, account: text, registry, network, force }: ChangeRoleOptions,
  say: Say,
): Promise<Answer> {
  const hash = roleHashOf(role);
  const account = accountOf(text);
  const isGrant = command === 'grant';
  return asAdmin(time, registryOf(registry, network), async (admin) => {
    const action: AdminAction<{ hasRole: boolean }> = {
      name: `role ${command}`,
      doing: isGrant ? `grant ${account} the ${role} role` : `take the ${role} role from ${account}`,
      method: `${command}Role`,
      args: [hash, account],
      about: { role, account },
      read: async (block) => ({
        hasRole: await admin.contract.hasRole(hash, account, { blockTag: block ?? 'latest' }),
      }),
      isDone: ({ hasRole }) => hasRole === isGrant,
      describe: ({ hasRole }) => `${account} ${hasRole ? 'has' : 'does not have'} the ${role} role.`,
    };
    const before = await action.read();
    if (action.isDone(before)) return nothingToDo(admin, action, before);
    if (!isGrant) {
      if (hash === ADMIN_ROLE && !force) await keepAnAdmin(admin, account);
      if (account === admin.wallet.address && OWN_ROLE[role] !== undefined)
        say(`Warning: this is your own wallet: ${OWN_ROLE[role]}`);
    }
    return carryOut(admin, action, say);
  });
}

/** The consequence for a wallet that revokes its own role. */
const OWN_ROLE: Record<string, string> = {
  admin: 'it cannot grant itself the admin role again; another admin can.',
  minter: 'the service cannot mint with it any more.',
};

function accountOf(text: string): string {
  requireAddress('--account', text);
  if (text !== ZeroAddress) return getAddress(text);
  throw invalid('--account is the zero address, whose key nobody has.');
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
