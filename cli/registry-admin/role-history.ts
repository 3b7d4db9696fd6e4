import type { ChainLog } from '../../service/chain/read-chain';
import { ChainError } from '../../service/base/errors';
import { registryInterface } from '../../service/registry/abi';

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
export interface RoleHistory {
  /** The expected current members. */
  holders: RoleHolder[];
  /** Every account that ever had a role, with the role. */
  everybody: { role: string; account: string }[];
  /** Hashes of all roles that were ever granted or given a role admin. */
  roles: string[];
}

/** First topics of the logs about roles. */
export const ROLE_TOPICS = [
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

/** The error for logs that contradict the contract. */
export function historyIncomplete(what: string): ChainError {
  const remedy = 'Run the command again, or use another node (RPC_URL): this one omits logs.';
  const message = `The logs contradict the roles of the registry: one is missing ${what}. ${remedy}`;
  return new ChainError('ROLE_HISTORY_INCOMPLETE', message, { remedy });
}
