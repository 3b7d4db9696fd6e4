import { zeroPadValue, ZeroAddress } from 'ethers';
import { registryInterface } from '../chain/registry-topics';

/** What a receipt has that decides, as JSON-RPC gives it. */
export interface MintReceipt {
  transactionHash: string;
  status: string;
  gasUsed: string;
  logs: readonly { address: string; topics: readonly string[] }[];
}

/** Whose token is looked for. Without checksums. */
export interface SoughtToken {
  registryAddress: string;
  /** 64 lower-case hexadecimal digits. */
  tokenId: string;
}

/**
 * What the receipts of one mint's transactions say of it:
 *
 * - `none`: there are none.
 * - `mined`: the token was made.
 * - `reverted`: a transaction was mined, and the registry refused; `usedGas` is what it used up until then.
 * - `no token`: a transaction succeeded and made no token: what is at the registry's address is no registry.
 */
export type Verdict =
  | { state: 'none' }
  | { state: 'mined' | 'no token'; hash: string }
  | { state: 'reverted'; hash: string; usedGas: bigint };

const TRANSFER = registryInterface.getEvent('Transfer').topicHash;
const FROM_NOBODY = zeroPadValue(ZeroAddress, 32);

/** Judges: a token that was made counts, whatever became of the other transactions for it. */
export function judgeReceipts(receipts: readonly MintReceipt[], token: SoughtToken): Verdict {
  const minted = receipts.find(({ status, logs }) => Number(status) === 1 && logs.some(isMintOf(token)));
  if (minted) return { state: 'mined', hash: minted.transactionHash };
  const reverted = receipts.find(({ status }) => Number(status) !== 1);
  if (reverted)
    return { state: 'reverted', hash: reverted.transactionHash, usedGas: BigInt(reverted.gasUsed) };
  const [pointless] = receipts;
  return pointless ? { state: 'no token', hash: pointless.transactionHash } : { state: 'none' };
}

/** The topics of the log that a registry emits when it makes a token. */
export function mintTopics(tokenId: string): string[] {
  return [TRANSFER, FROM_NOBODY, `0x${tokenId}`];
}

function isMintOf({ registryAddress, tokenId }: SoughtToken) {
  const [transfer, from, id] = mintTopics(tokenId);
  return ({ address, topics }: MintReceipt['logs'][number]): boolean =>
    address.toLowerCase() === registryAddress.toLowerCase() &&
    topics[0] === transfer &&
    topics[1] === from &&
    topics[3] === id;
}
