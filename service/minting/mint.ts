import { Transaction } from 'ethers';
import type { TransactionFees } from '../chain/fees';
import type { ChainError } from '../base/errors';
import type { Issuance, MinedMint, MintTransaction } from '../journal/issuance';

// A mint is one token that is to be made. A signed mint is a transaction that makes it. A pending transaction
// is the mint's way to the chain under one nonce: one signed mint, and those that replace it with a higher
// fee.

/** A transaction that mints a token, and what it offers. */
export interface SignedMint extends MintTransaction {
  /** The wallet that signed it, with its checksum. */
  from: string;
  gasLimit: bigint;
  fees: TransactionFees;
  /** Whether some node may have it, going by what nodes said of it. */
  mayBeTaken: boolean;
  /**
   * Whether it was ever given to a node, whatever that said: then it can be mined as long as its nonce is not
   * used.
   */
  wasSent: boolean;
}

/** What becomes of a mint, for its callers: the hash of the transaction that made the token. */
export interface Outcome {
  promise: Promise<string>;
  resolve(hash: string): void;
  reject(error: Error): void;
}

/** One token on its way, from when the queue knows of it until it is final or failed. */
export interface Mint {
  readonly issuance: Issuance;
  /** The queue's order: lower ones first. */
  readonly order: number;
  /**
   * Whether an earlier run of the service began it: nobody waits for it, so without funds it does not fail.
   */
  readonly isRecovered: boolean;
  /** The oldest first. */
  transactions: SignedMint[];
  /** Whether its token ever existed: its document is out in the world, and the mint never fails. */
  wasMined: boolean;
  /** While it is mined. */
  mined: MinedMint | undefined;
  /** Since when the block that it was mined in is not on the chain, by `performance.now()`. */
  goneSince: number | undefined;
  /** How often it was deferred for a refusal that may pass. */
  deferrals: number;
  /** How often its gas was estimated again. */
  estimates: number;
  /** Why nodes would not take it again and again: its failure once nothing that was sent can make it. */
  refusal: ChainError | undefined;
  /** Whether the wallet could not pay for it when it was last sent or estimated. */
  isUnfunded: boolean;
  /** Whether the journal says that a node may have it. */
  isNoted: boolean;
  outcome: Outcome;
  /** The last change of the journal: the next one waits for it. */
  recorded: Promise<void>;
}

/** A mint under a nonce. */
export interface PendingTransaction {
  readonly mint: Mint;
  readonly nonce: number;
  /** The newest replaces the others. */
  versions: [SignedMint, ...SignedMint[]];
  /** When the newest was sent, by `performance.now()`. */
  sentAt: number;
  /** How often in a row no node acknowledged it. */
  attempts: number;
  /** Since when its nonce is used, without a receipt of any version. */
  missingSince: number | undefined;
  /** How often it was replaced for not being mined in time. */
  replacements: number;
}

/** A mint at its beginning. */
export function newMint(issuance: Issuance, order: number, isRecovered: boolean): Mint {
  return {
    issuance,
    order,
    isRecovered,
    transactions: [],
    wasMined: issuance.txHash !== undefined,
    mined: undefined,
    goneSince: undefined,
    deferrals: 0,
    estimates: 0,
    refusal: undefined,
    isUnfunded: false,
    isNoted: issuance.state === 'submitted',
    outcome: newOutcome(),
    recorded: Promise.resolve(),
  };
}

/** An outcome that is open. */
export function newOutcome(): Outcome {
  let resolve: Outcome['resolve'] = () => undefined;
  let reject: Outcome['reject'] = () => undefined;
  const promise = new Promise<string>((resolved, rejected) => {
    resolve = resolved;
    reject = rejected;
  });
  // Nobody may be waiting.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}

/** A mint under the nonce of its versions. */
export function newPending(mint: Mint, versions: PendingTransaction['versions']): PendingTransaction {
  const [{ nonce }] = versions;
  const sentAt = performance.now();
  return { mint, nonce, versions, sentAt, attempts: 0, missingSince: undefined, replacements: 0 };
}

/** The way of a mint under the nonce of its last transaction by this wallet, if it has any. */
export function lastPending(mint: Mint, wallet: string): PendingTransaction | undefined {
  const own = mint.transactions.filter(({ from }) => from === wallet);
  const [first, ...others] = own.filter(({ nonce }) => nonce === own.at(-1)?.nonce);
  return first && newPending(mint, [first, ...others]);
}

/** A transaction of the journal. Whether it was ever sent is not known, so it counts as sent. */
export function readSignedMint({ tokenId, hash, nonce, raw }: MintTransaction): SignedMint {
  const { from, gasLimit, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = Transaction.from(raw);
  const fees: TransactionFees =
    maxFeePerGas !== null && maxPriorityFeePerGas !== null
      ? { type: 2, maxFeePerGas, maxPriorityFeePerGas }
      : { type: 0, gasPrice: gasPrice ?? 0n };
  return { tokenId, hash, nonce, raw, from: from ?? '', gasLimit, fees, mayBeTaken: true, wasSent: true };
}

/** The version of a pending transaction that counts. */
export function newestOf({ versions }: PendingTransaction): SignedMint {
  return versions.at(-1) ?? versions[0];
}
