import pMap from 'p-map';
import { readBackwards } from '../../service/chain/read-backwards';
import {
  logsOf,
  readAgainWhileItMayPass,
  readUpToHead,
  type ChainBlock,
  type ChainLog,
} from '../../service/chain/read-chain';
import type { TradeTrustTokenStandard } from '../../typechain-types';
import type { ReachedRegistry } from '../token/find-token';
import { createReadingProgress } from '../terminal/reading-progress';
import { historyIncomplete, replayRoles, ROLE_TOPICS, type RoleHolder } from './role-history';
import { ADMIN_ROLE, ROLES } from './role-names';

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

const CONCURRENT_CALLS = 8;

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
    await pMap(
      [...history.everybody, ...known],
      async ({ role, account }) => {
        const isTold = history.holders.some((held) => held.role === role && held.account === account);
        if ((await contract.hasRole(role, account, at)) !== isTold) throw historyIncomplete(`of ${account}`);
      },
      { concurrency: CONCURRENT_CALLS },
    );
    const roles = [...new Set([...ROLES.values(), ...history.roles])];
    const admins = await pMap(
      roles,
      async (role) => {
        return [role, await contract.getRoleAdmin(role, at)] as const;
      },
      { concurrency: CONCURRENT_CALLS },
    );
    const unusual = admins.filter(([, admin]) => admin !== ADMIN_ROLE);
    return { block: head.number, holders: history.holders, adminOf: new Map(unusual) };
  };
  return readAgainWhileItMayPass(() => readUpToHead(client, readAt));
}

/**
 * Whether another account has the admin role. Every account that ever had it is checked, so a missing log can
 * only make the answer a wrong no.
 */
export async function hasOtherAdmin(source: RolesSource, account: string): Promise<boolean> {
  const readAt = async (head: ChainBlock): Promise<boolean> => {
    const logs = await readRoleLogs(source, head.number);
    const candidates = replayRoles(logs).everybody.filter(
      (had) => had.role === ADMIN_ROLE && had.account !== account,
    );
    const answers = await pMap(
      candidates,
      (had) => source.contract.hasRole(ADMIN_ROLE, had.account, { blockTag: head.number }),
      { concurrency: CONCURRENT_CALLS },
    );
    return answers.includes(true);
  };
  return readAgainWhileItMayPass(() => readUpToHead(source.client, readAt));
}

async function readRoleLogs({ bulkClient, registry }: RolesSource, toBlock: number): Promise<ChainLog[]> {
  const range = { fromBlock: registry.genesisBlock, toBlock };
  const progress = createReadingProgress((line) => console.error(line), 'it ends at the first block');
  const logs: ChainLog[] = [];
  await readBackwards(
    { ...range, onProgress: (block) => progress(block, range) },
    (first, last) =>
      logsOf(bulkClient, {
        address: [registry.contracts.registry],
        topics: ROLE_TOPICS,
        fromBlock: first,
        toBlock: last,
      }),
    (read) => {
      logs.unshift(...read);
      return false;
    },
  );
  return logs;
}
