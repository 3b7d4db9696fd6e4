import { newDeferred, type Deferred } from '../base/waiting';
import { Transaction } from 'ethers';
import type { TransactionFees } from '../chain/fees';
import type { ChainError } from '../base/errors';
import type { Issuance, MinedMint, MintTransaction } from '../journal/issuance';

// A mint is one attempt to make one token. A signed mint is a transaction that makes it. A pending
// transaction is a mint under one nonce: a signed mint and its replacements with higher fees.

/** A transaction that mints a token, with its gas limit and fees. */
export interface SignedMint extends MintTransaction {
  /** Checksummed address of the wallet that signed it. */
  from: string;
  gasLimit: bigint;
  fees: TransactionFees;
  /** Whether some node may have it, judged by the nodes' answers. */
  mayBeTaken: boolean;
  /**
   * Whether it was ever given to a node, whatever the answer. If so, it can be mined until its nonce is used.
   */
  wasSent: boolean;
}

/** The result of a mint for its callers: the hash of the transaction that made the token, or the error. */
export type Outcome = Deferred<string>;

/** One token, from when it is added to the queue until it is final or failed. */
export interface Mint {
  readonly issuance: Issuance;
  /** Position in the queue: lower ones first. */
  readonly order: number;
  /**
   * Whether an earlier run of the service began it. Nobody waits for it, so it does not fail for lack of
   * funds.
   */
  readonly isRecovered: boolean;
  /** The oldest first. */
  transactions: SignedMint[];
  /** Whether its token ever existed. Then its document was handed out, and the mint never fails. */
  wasMined: boolean;
  /** Set while it is mined. */
  mined: MinedMint | undefined;
  /** When its block was first missing from the chain, by `performance.now()`. */
  goneSince: number | undefined;
  /** How often its gas could not be estimated. */
  deferrals: number;
  /** How often its gas was estimated again. */
  estimates: number;
  /**
   * The nodes' repeated refusal. It becomes the mint's failure once no sent transaction can make the token.
   */
  refusal: ChainError | undefined;
  /** Whether the wallet could not pay for it when it was last sent or estimated. */
  isUnfunded: boolean;
  /** Whether the journal has the mint as `submitted`. */
  isNoted: boolean;
  outcome: Outcome;
  /** The mint's last journal write; the next one waits for it. */
  recorded: Promise<void>;
}

/** A mint under a nonce. */
export interface PendingTransaction {
  readonly mint: Mint;
  readonly nonce: number;
  /** The newest replaces the others. */
  versions: [SignedMint, ...SignedMint[]];
  /** When the newest version was sent, by `performance.now()`. */
  sentAt: number;
  /** Consecutive sends that no node acknowledged. */
  attempts: number;
  /** When its nonce was first seen as used without a mined token, by `performance.now()`. */
  missingSince: number | undefined;
  /** How often it was replaced because it was not mined in time. */
  replacements: number;
}

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

/** An unresolved outcome. */
export function newOutcome(): Outcome {
  const outcome = newDeferred<string>();
  // Without a caller, a rejection would be unhandled.
  outcome.promise.catch(() => undefined);
  return outcome;
}

/** A pending transaction of a mint, not sent yet. All versions have the same nonce. */
export function newPending(mint: Mint, versions: PendingTransaction['versions']): PendingTransaction {
  const [{ nonce }] = versions;
  const sentAt = performance.now();
  return { mint, nonce, versions, sentAt, attempts: 0, missingSince: undefined, replacements: 0 };
}

/** The pending transaction with the nonce that this wallet last signed for the mint, if any. */
export function lastPending(mint: Mint, wallet: string): PendingTransaction | undefined {
  const own = mint.transactions.filter(({ from }) => from === wallet);
  const [first, ...others] = own.filter(({ nonce }) => nonce === own.at(-1)?.nonce);
  return first && newPending(mint, [first, ...others]);
}

/**
 * Reads a transaction of the journal. The journal does not record whether it was sent, so it counts as sent.
 */
export function readSignedMint({ tokenId, hash, nonce, raw }: MintTransaction): SignedMint {
  const { from, gasLimit, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = Transaction.from(raw);
  const fees: TransactionFees =
    maxFeePerGas !== null && maxPriorityFeePerGas !== null
      ? { type: 2, maxFeePerGas, maxPriorityFeePerGas }
      : { type: 0, gasPrice: gasPrice ?? 0n };
  return { tokenId, hash, nonce, raw, from: from ?? '', gasLimit, fees, mayBeTaken: true, wasSent: true };
}

/** The newest version of a pending transaction, which replaces the others. */
export function newestOf({ versions }: PendingTransaction): SignedMint {
  return versions.at(-1) ?? versions[0];
}
