import type { Network } from '../../service/chain/networks';

/** Where people look a transaction up; undefined on networks without an explorer. */
export function transactionLink({ explorerUrl }: Network, hash: string): string | undefined {
  return explorerUrl && `${explorerUrl}/tx/${hash}`;
}

/** Where people look a contract or a wallet up; undefined on networks without an explorer. */
export function addressLink({ explorerUrl }: Network, address: string): string | undefined {
  return explorerUrl && `${explorerUrl}/address/${address}`;
}
