import type { ChainLog } from '../../service/chain/read-chain';
import { ChainError } from '../../service/base/errors';
import { registryInterface } from '../../service/registry/abi';

/** Who has a role, by its hash, since which block, and who granted it. Addresses with their checksum. */
export interface RoleHolder {
  role: string;
  account: string;
  sinceBlock: number;
  grantedBy: string;
}

/** What the logs of a registry say of its roles. */
export interface RoleHistory {
  /** Who should have which role now. */
  holders: RoleHolder[];
  /** Everybody who ever had a role, with it. */
  everybody: { role: string; account: string }[];
  /** Hashes of all roles that were granted, or that were given an admin of their own. */
  roles: string[];
}

/** First topics of the logs that tell of roles. */
export const ROLE_TOPICS = [
  registryInterface.getEvent('RoleGranted').topicHash,
  registryInterface.getEvent('RoleRevoked').topicHash,
  registryInterface.getEvent('RoleAdminChanged').topicHash,
];

/**
 * Replays the logs, which are in chain order.
 *
 * @throws ChainError ROLE_HISTORY_INCOMPLETE when one must be missing: a role is granted only to who does not
 *   have it (AccessControl).
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

/** The logs and the contract contradict each other. */
export function historyIncomplete(what: string): ChainError {
  const remedy = 'Run it again, or ask another node (RPC_URL): this one leaves logs out.';
  const message = `The logs do not lead to the roles that the registry has: one is missing ${what}. ${remedy}`;
  return new ChainError('ROLE_HISTORY_INCOMPLETE', message, { remedy });
}
