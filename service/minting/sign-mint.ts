import { keccak256 } from 'ethers';
import type { TransactionFees } from '../chain/fees';
import type { Lane } from './lane-state';
import { persist } from './settle-mint';
import type { Mint, SignedMint } from './mint';

/** What a mint's transaction is signed with. */
export interface MintTerms {
  nonce: number;
  gasLimit: bigint;
  fees: TransactionFees;
}

/** Signs the transaction of a mint, and keeps it in mind; it is not in the journal yet. */
export async function signMint(lane: Lane, mint: Mint, terms: MintTerms): Promise<SignedMint> {
  const { wallet, registry, network, registryAddress } = lane;
  const { tokenId, beneficiary, holder, remark } = mint.issuance;
  const { nonce, gasLimit, fees } = terms;
  const data = registry.interface.encodeFunctionData('mint', [beneficiary, holder, `0x${tokenId}`, remark]);
  const { chainId } = network;
  const raw = await wallet.signTransaction({ to: registryAddress, data, chainId, nonce, gasLimit, ...fees });
  const signed: SignedMint = { tokenId, hash: keccak256(raw), nonce, raw, gasLimit, fees, mayBeTaken: false };
  mint.transactions.push(signed);
  return signed;
}

/** Keeps transactions in the journal, which comes before sending them. False when the lane stops. */
export async function keep(lane: Lane, signed: readonly SignedMint[]): Promise<boolean> {
  const transactions = signed.map(({ tokenId, hash, nonce, raw }) => ({ tokenId, hash, nonce, raw }));
  const kept = await persist(lane, async () => {
    await lane.journal.keepTransactions(transactions);
    return true;
  });
  return kept === true;
}
