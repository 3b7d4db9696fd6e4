import { constants } from '@tradetrust-tt/token-registry';
import { ConfigurationError } from '../../service/base/errors';

const HASHES: Record<keyof typeof constants.roleHash, string> = constants.roleHash;

/** The role that may do everything, and grant and revoke every role unless `setRoleAdmin` changed that. */
export const ADMIN_ROLE: string = HASHES.DefaultAdmin;

/** The values of `--role` and the role's hash in the registry (RegistryAccess.sol). */
export const ROLES: ReadonlyMap<string, string> = new Map([
  ['minter', HASHES.MinterRole],
  ['accepter', HASHES.AccepterRole],
  ['restorer', HASHES.RestorerRole],
  ['admin', ADMIN_ROLE],
]);

/**
 * Roles that are granted to nobody at deployment. Some registries make them the role admins of the others.
 */
const ADMINS_OF_ONE_ROLE: readonly (readonly [string, string])[] = [
  ['minter admin', HASHES.MinterAdminRole],
  ['accepter admin', HASHES.AccepterAdminRole],
  ['restorer admin', HASHES.RestorerAdminRole],
];

const NAMES = new Map([...ROLES, ...ADMINS_OF_ONE_ROLE].map(([name, hash]) => [hash, name]));

/**
 * The hash of a role that a user names.
 *
 * @throws ConfigurationError ARGUMENT_INVALID listing the names.
 */
export function roleHashOf(name: string): string {
  const hash = ROLES.get(name);
  if (hash !== undefined) return hash;
  const message = `--role ${name} is not a role of the registry. Known: ${[...ROLES.keys()].join(', ')}.`;
  throw new ConfigurationError('ARGUMENT_INVALID', message);
}

/** The name of a role, or its hash if it has none: a registry accepts any hash as a role. */
export function roleNameOf(hash: string): string {
  return NAMES.get(hash) ?? hash;
}
