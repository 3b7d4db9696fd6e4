import { constants } from '@tradetrust-tt/token-registry';
import pMap from 'p-map';
import { ChainError } from '../../service/base/errors';
import {
  logsOf,
  readAgainWhileItMayPass,
  readBackwards,
  readUpToHead,
  type ChainBlock,
  type ChainLog,
} from '../../service/chain/read-chain';
import { registryInterface } from '../../service/registry/registry-contracts';
import type { TradeTrustTokenStandard } from '../../typechain-types';
import { invalid } from '../errors';
import { createReadingProgress } from '../terminal/dialog';
import type { ReachedRegistry } from '../token/find-token';
import { tell } from '../answer';

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

const NAMES: ReadonlyMap<string, string> = new Map([
  ...[...ROLES].map(([name, hash]) => [hash, name] as const),
  // Granted to nobody at deployment. Some registries make them the role admins of the others.
  [HASHES.MinterAdminRole, 'minter admin'],
  [HASHES.AccepterAdminRole, 'accepter admin'],
  [HASHES.RestorerAdminRole, 'restorer admin'],
]);

/**
 * The hash of a role that a user names.
 *
 * @throws ConfigurationError ARGUMENT_INVALID listing the names.
 */
export function roleHashOf(name: string): string {
  const hash = ROLES.get(name);
  if (hash !== undefined) return hash;
  throw invalid(`--role ${name} is not a role of the registry. Known: ${[...ROLES.keys()].join(', ')}.`);
}

/** The name of a role, or its hash if it has none: a registry accepts any hash as a role. */
export function roleNameOf(hash: string): string {
  return NAMES.get(hash) ?? hash;
}

/**
 * The members of a registry's roles, at one block. `adminOf`: the role that grants a role, by hash, where it
 * is not the admin role.
 */
export interface RegistryRoles {
  block: number;
  holders: RoleHolder[];
  adminOf: ReadonlyMap<string, string>;
}

/** Where to read the roles. */
export interface RolesSource extends Pick<ReachedRegistry, 'client' | 'bulkClient' | 'registry'> {
  contract: TradeTrustTokenStandard;
}

/**
 * Reads the members of the roles. The registry does not list them: its logs name candidates, and it confirms
 * each. An account is missed if the node omits all of its logs, unless it is one of `also`.
 *
 * @throws ChainError ROLE_HISTORY_INCOMPLETE if the logs contradict the registry; BLOCK_CHANGED; any error of
 *   the node.
 */
export async function readRoles(source: RolesSource, also: readonly string[]): Promise<RegistryRoles> {
  const { client, contract } = source;
  const readAt = async (head: ChainBlock): Promise<RegistryRoles> => {
    const history = replayRoles(await readRoleLogs(source, head.number));
    const at = { blockTag: head.number };
    const known = [...ROLES.values()].flatMap((role) => also.map((account) => ({ role, account })));
    await forEach([...history.everybody, ...known], async ({ role, account }) => {
      const isTold = history.holders.some((held) => held.role === role && held.account === account);
      if ((await contract.hasRole(role, account, at)) !== isTold) throw historyIncomplete(`of ${account}`);
    });
    const roles = [...new Set([...ROLES.values(), ...history.roles])];
    const admins = await forEach(roles, async (role) => {
      return [role, await contract.getRoleAdmin(role, at)] as const;
    });
    const unusual = admins.filter(([, admin]) => admin !== ADMIN_ROLE);
    return { block: head.number, holders: history.holders, adminOf: new Map(unusual) };
  };
  return readAgainWhileItMayPass(client.time, () => readUpToHead(client, readAt));
}

/**
 * Whether another account has the admin role. Every account that ever had it is checked, so a missing log can
 * only make the answer a wrong no.
 */
export async function hasOtherAdmin(source: RolesSource, account: string): Promise<boolean> {
  const readAt = async ({ number: block }: ChainBlock): Promise<boolean> => {
    const { everybody } = replayRoles(await readRoleLogs(source, block));
    const others = everybody.filter((had) => had.role === ADMIN_ROLE && had.account !== account);
    const answers = await forEach(others, (had) =>
      source.contract.hasRole(ADMIN_ROLE, had.account, { blockTag: block }),
    );
    return answers.includes(true);
  };
  return readAgainWhileItMayPass(source.client.time, () => readUpToHead(source.client, readAt));
}

const CONCURRENT_CALLS = 8;

function forEach<T, R>(all: readonly T[], ask: (one: T) => Promise<R>): Promise<R[]> {
  return pMap(all, ask, { concurrency: CONCURRENT_CALLS });
}

async function readRoleLogs({ bulkClient, registry }: RolesSource, toBlock: number): Promise<ChainLog[]> {
  const range = { fromBlock: registry.genesisBlock, toBlock };
  const progress = createReadingProgress(tell, 'it ends at the first block');
  const address = [registry.contracts.registry];
  const logs: ChainLog[] = [];
  await readBackwards(
    { ...range, onProgress: (block) => progress(block, range) },
    (fromBlock, last) => logsOf(bulkClient, { address, topics: ROLE_TOPICS, fromBlock, toBlock: last }),
    (read) => {
      logs.unshift(...read);
      return false;
    },
  );
  return logs;
}

/**
 * An account with a role (by hash), the block of the grant and the account that granted it. Addresses have
 * their checksum.
 */
export interface RoleHolder {
  role: string;
  account: string;
  sinceBlock: number;
  grantedBy: string;
}

/** The roles of a registry according to its logs. */
interface RoleHistory {
  /** The expected current members. */
  holders: RoleHolder[];
  /** Every account that ever had a role, with the role. */
  everybody: { role: string; account: string }[];
  /** Hashes of all roles that were ever granted or given a role admin. */
  roles: string[];
}

const ROLE_TOPICS = [
  registryInterface.getEvent('RoleGranted').topicHash,
  registryInterface.getEvent('RoleRevoked').topicHash,
  registryInterface.getEvent('RoleAdminChanged').topicHash,
];

/**
 * Replays the logs, which are in chain order.
 *
 * @throws ChainError ROLE_HISTORY_INCOMPLETE if a log must be missing: AccessControl logs a grant only for an
 *   account without the role, and a revocation only for an account with it.
 */
export function replayRoles(logs: readonly ChainLog[]): RoleHistory {
  const holders = new Map<string, RoleHolder>();
  const everybody = new Map<string, { role: string; account: string }>();
  const roles = new Set<string>();
  for (const log of logs) {
    const parsed = registryInterface.parseLog(log);
    if (parsed === null) continue;
    const { role, account, sender } = parsed.args.toObject() as Record<string, string>;
    if (role === undefined) continue;
    roles.add(role);
    if (account === undefined || sender === undefined) continue;
    const key = `${role} ${account}`;
    const isGranted = parsed.name === 'RoleGranted';
    if (holders.has(key) === isGranted)
      throw historyIncomplete(`of ${account} before block ${log.blockNumber}`);
    everybody.set(key, { role, account });
    if (isGranted) holders.set(key, { role, account, sinceBlock: log.blockNumber, grantedBy: sender });
    else holders.delete(key);
  }
  return { holders: [...holders.values()], everybody: [...everybody.values()], roles: [...roles] };
}

function historyIncomplete(what: string): ChainError {
  const remedy = 'Run the command again, or use another node (RPC_URL): this one omits logs.';
  const message = `The logs contradict the roles of the registry: one is missing ${what}. ${remedy}`;
  return new ChainError('ROLE_HISTORY_INCOMPLETE', message, { remedy });
}
