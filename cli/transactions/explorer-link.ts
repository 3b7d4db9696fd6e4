import type { Network } from '../../service/chain/networks';

/** The transaction's page on the network's explorer. Undefined for networks without one. */
export function transactionLink({ explorerUrl }: Network, hash: string): string | undefined {
  return explorerUrl && `${explorerUrl}/tx/${hash}`;
}

/** The page of a contract or wallet on the network's explorer. Undefined for networks without one. */
export function addressLink({ explorerUrl }: Network, address: string): string | undefined {
  return explorerUrl && `${explorerUrl}/address/${address}`;
}
