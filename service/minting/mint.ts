import { Transaction } from 'ethers';
import type { Lifecycle } from '../base/lifecycle';
import { type Time, newDeferred, type Deferred } from '../base/time';
import type { ChainError } from '../base/errors';
import type { Logger } from '../base/logger';
import type { Refusal } from '../chain/node-errors';
import type { TransactionFees } from '../chain/transactions';
import type { Confirmations, Network } from '../chain/networks';
import type { Chain } from '../chain/chain';
import type { Issuance, MinedMint, MintTransaction } from '../journal/issuance';
import type { MintProgress } from '../journal/mint-progress';
import type { TransactionSigner } from '../keys/transaction-signer';

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

/** One token, from when it is added to the queue until it is final or failed. */
export class Mint {
  /** The oldest first. */
  transactions: SignedMint[] = [];
  /** Whether its token ever existed. Then its document was handed out, and the mint never fails. */
  wasMined: boolean;
  /** Set while it is mined. */
  mined: MinedMint | undefined;
  /** When its block was first missing from the chain, by `elapsed`. */
  goneSince: number | undefined;
  /** How often its gas could not be estimated. */
  deferrals = 0;
  /** How often its gas was estimated again. */
  estimates = 0;
  /**
   * The nodes' repeated refusal. It becomes the mint's failure once no sent transaction can make the token.
   */
  refusal: ChainError | undefined;
  /** Whether the wallet could not pay for it when it was last sent or estimated. */
  isUnfunded = false;
  /** Whether the journal has the mint as `submitted`. */
  isNoted: boolean;
  outcome = newOutcome();
  /** The mint's last journal write; the next one waits for it. */
  recorded = Promise.resolve();

  /**
   * @param order position in the queue: lower ones first.
   * @param isRecovered whether an earlier run of the service began it. Nobody waits for it, so it does not
   *   fail for lack of funds.
   */
  constructor(
    readonly issuance: Issuance,
    readonly order: number,
    readonly isRecovered: boolean,
  ) {
    this.wasMined = issuance.txHash !== undefined;
    this.isNoted = issuance.state === 'submitted';
  }

  get tokenId(): string {
    return this.issuance.tokenId;
  }
}

/** A mint under a nonce, which all versions have. */
export class PendingTransaction {
  /** Consecutive sends that no node acknowledged. */
  attempts = 0;
  /** The class of its last refusal, and how many in a row were of it. */
  lastRefusal: { refusal: Refusal; times: number } | undefined;
  /** When its nonce was first seen as used without a mined token, by `elapsed`. */
  missingSince: number | undefined;
  /** How often it was replaced because it was not mined in time. */
  replacements = 0;

  /**
   * @param versions the oldest first.
   * @param sentAt when the newest version was sent, by `elapsed`. Before it is sent: when it was signed.
   */
  constructor(
    readonly mint: Mint,
    readonly versions: [SignedMint, ...SignedMint[]],
    public sentAt: number,
  ) {}

  get nonce(): number {
    return this.versions[0].nonce;
  }

  /** The newest version replaces the others. */
  get newest(): SignedMint {
    return this.versions.at(-1) ?? this.versions[0];
  }
}

/** The result of a mint for its callers: the hash of the transaction that made the token, or the error. */
export function newOutcome(): Deferred<string> {
  const outcome = newDeferred<string>();
  // Without a caller, a rejection would be unhandled.
  outcome.promise.catch(() => undefined);
  return outcome;
}

/** The pending transaction with the nonce that this wallet last signed for the mint, if any. */
export function lastPending(mint: Mint, wallet: string, time: Time): PendingTransaction | undefined {
  const own = mint.transactions.filter(({ from }) => from === wallet);
  const [first, ...others] = own.filter(({ nonce }) => nonce === own.at(-1)?.nonce);
  return first && new PendingTransaction(mint, [first, ...others], time.elapsed());
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

/** Everything that a queue needs. */
export interface MintQueueOptions {
  client: Chain;
  network: Network;
  /** When a mint's block is final. */
  confirmations: Confirmations;
  wallet: TransactionSigner;
  registryAddress: string;
  journal: MintProgress;
  /** Rejects when the node cannot be asked or belongs to another chain. */
  checkChain: () => Promise<void>;
  /** Fees of the next transaction. */
  readFees: () => Promise<TransactionFees>;
  logger: Logger;
  /** Masks secrets in the failure messages that the journal keeps. */
  mask: (text: string) => string;
  lifecycle: Lifecycle;
  time: Time;
}

/** The queue's waiting times in milliseconds, and its limits. */
export interface MintTiming {
  /** Between two polls of the chain while a transaction is pending. */
  pollMs: number;
  /** How long a contradicting answer is attributed to a node that is behind. */
  patienceMs: number;
  /** Between two checks whether the node still has the transaction with the lowest nonce. */
  presenceMs: number;
  /** A transaction that is not mined within this time is replaced: five blocks, and a minute at least. */
  replaceAfterMs: number;
  /** How often a transaction is replaced although its fees are high enough. */
  mostReplacements: number;
  /** Before a mint that the wallet cannot pay for is tried again. */
  deferMs: number;
  /** How long a chain without the registry counts as being set up. */
  registryMs: number;
  /** Between two checks whether the blocks of final mints are still on the chain. */
  finalCheckMs: number;
}
