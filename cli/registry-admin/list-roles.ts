import { Wallet, getAddress } from 'ethers';
import { readSettings } from '../../service/config/config';
import { settingOf } from '../../service/config/settings';
import { TradeTrustTokenStandard__factory } from '../../typechain-types';
import { printableJson } from '../terminal/printable';
import { registryOf, requireAddress } from '../token/find-token';
import { withRegistry } from '../token/find-token';
import type { Answer } from '../answer';
import { readRoles, type RegistryRoles } from './read-roles';
import type { RoleHolder } from './role-history';
import { roleHashOf, roleNameOf } from './role-names';

/** Filters; undefined selects all. */
export interface ListRolesOptions {
  role: string | undefined;
  account: string | undefined;
  registry: string | undefined;
  network: string | undefined;
}

/**
 * Lists the accounts that have roles of the registry. The answer is yes if any account matches the filters.
 */
export async function listRoles({
  role,
  account: text,
  registry: flag,
  network: name,
}: ListRolesOptions): Promise<Answer> {
  const hash = role === undefined ? undefined : roleHashOf(role);
  if (text !== undefined) requireAddress('--account', text);
  const account = text === undefined ? undefined : getAddress(text);
  const place = registryOf(flag, name);
  const privateKey = settingOf(readSettings().settings, 'WALLET_PRIVATE_KEY');
  const wallet = privateKey === undefined ? undefined : new Wallet(privateKey).address;
  return withRegistry(place, async (reached) => {
    const contract = TradeTrustTokenStandard__factory.connect(place.registry, reached.client);
    const also = [...new Set([account, wallet])].flatMap((address) => address ?? []);
    const roles = await readRoles({ ...reached, contract }, also);
    const holders = roles.holders.filter(
      (holder) => (hash ?? holder.role) === holder.role && (account ?? holder.account) === holder.account,
    );
    const { network } = reached;
    const address = getAddress(place.registry);
    const head = { network: network.name, chainId: network.chainId, registry: address };
    return {
      lines: linesOf({ ...roles, holders }, { ...head, wallet }),
      json: jsonOf({ ...roles, holders }, { ...head, wallet }),
      isYes: holders.length > 0,
    };
  });
}

/** The registry, and the wallet that the list marks. */
interface Head {
  network: string;
  chainId: number;
  registry: string;
  wallet: string | undefined;
}

function linesOf({ block, holders, adminOf }: RegistryRoles, head: Head): string[] {
  const { registry, network, chainId, wallet } = head;
  const rows = holders.map(({ role, account, sinceBlock, grantedBy }) => {
    const own = account === wallet ? '  (wallet of the settings)' : '';
    const name = roleNameOf(role).padEnd(8);
    return `  ${name}  ${account}  since block ${sinceBlock}, granted by ${grantedBy}${own}`;
  });
  const unusual = [...adminOf].map(
    ([role, admin]) =>
      `The ${roleNameOf(role)} role is granted and revoked by the ${roleNameOf(admin)} role, ` +
      'not by the admin.',
  );
  const title = `Roles in registry ${registry} on ${network} (chain id ${chainId}), at block ${block}`;
  return [title, ...(rows.length > 0 ? rows : ['  nobody']), ...unusual];
}

function jsonOf({ block, holders, adminOf }: RegistryRoles, { wallet, ...head }: Head): string {
  const entry = ({ role, ...rest }: RoleHolder): Record<string, unknown> => ({
    role: roleNameOf(role),
    roleHash: role,
    ...rest,
    isWallet: rest.account === wallet,
  });
  const roleAdmins = [...adminOf].map(([role, admin]) => ({
    role: roleNameOf(role),
    admin: roleNameOf(admin),
  }));
  return printableJson({ ...head, block, holders: holders.map(entry), roleAdmins });
}
