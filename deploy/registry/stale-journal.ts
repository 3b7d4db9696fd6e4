import type { HardhatRuntimeEnvironment } from 'hardhat/types';
import type { RpcRequest } from './chain-identity';
import { deployedAddresses, type Journal } from './journals';

/**
 * Whether a local chain no longer has the contracts of the journal, as after `evm_revert`. Code at an address
 * proves little: after a revert the same wallet may deploy other contracts to the same addresses. So every
 * transaction of the journal must still exist, and every address must have code.
 *
 * For local chains only: a public node may have pruned an old transaction.
 */
export async function isStale(
  hre: HardhatRuntimeEnvironment,
  request: RpcRequest,
  journal: Journal,
): Promise<boolean> {
  const hashes = await sentTransactions(hre, journal);
  if (hashes === undefined) return true;
  for (const hash of hashes) {
    if ((await request('eth_getTransactionByHash', [hash])) === null) return true;
  }
  for (const address of Object.values(deployedAddresses(journal))) {
    if (!(await hasCode(request, address))) return true;
  }
  return false;
}

/** Whether there is a contract at the address. */
export async function hasCode(request: RpcRequest, address: string): Promise<boolean> {
  return (await request('eth_getCode', [address, 'latest'])) !== '0x';
}

/**
 * Hashes of the transactions that were sent and not dropped, in order. Undefined if the journal cannot be
 * read: it is missing, or a run was killed before or while Ignition wrote it.
 */
export async function sentTransactions(
  hre: HardhatRuntimeEnvironment,
  journal: Journal,
): Promise<string[] | undefined> {
  const { listTransactions, TransactionStatus } = await import('@nomicfoundation/ignition-core');
  const { HardhatArtifactResolver } = await import('@nomicfoundation/hardhat-ignition/helpers');
  try {
    const transactions = await listTransactions(journal.folder, new HardhatArtifactResolver(hre));
    return transactions
      .filter(({ status }) => status !== TransactionStatus.DROPPED)
      .map(({ txHash }) => txHash);
  } catch {
    return undefined;
  }
}
