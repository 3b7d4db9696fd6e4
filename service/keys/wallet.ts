import { Wallet } from 'ethers';
import type { TransactionFees } from '../chain/transactions';
import type { WalletKey } from '../config/settings';

/** A transaction without its nonce. It transfers no currency. */
export type UnnumberedTransaction = TransactionFees & {
  /** Null if it creates a contract. */
  to: string | null;
  data: string;
  chainId: number;
  gasLimit: bigint;
};

/** All fields of a transaction that are signed. */
export type TransactionFields = UnnumberedTransaction & { nonce: number };

/** Signs the transactions of one address. */
export interface TransactionSigner {
  /** With its checksum. */
  readonly address: string;
  /** Returns the signed transaction, as nodes take it. */
  sign(fields: TransactionFields): Promise<string>;
}

/** Opens the wallet that deploys, mints and administers registries. */
export function openWallet({ privateKey }: WalletKey): TransactionSigner {
  const wallet = new Wallet(privateKey);
  return { address: wallet.address, sign: (fields) => wallet.signTransaction(fields) };
}
