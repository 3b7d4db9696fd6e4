import type { TransactionFees } from '../chain/fees';
import type { Failure, Issuance, MintTransaction } from '../journal/issuance';

// A mint is one token that is to be made. A signed mint is a transaction that makes it; there are several when it was signed again. A flight is the
// mint's way to the chain under one nonce: one signed mint, and those that replace it with a higher fee. A nonce is held while a flight has it.

/** A transaction that mints a token, and what it offers. */
export interface SignedMint extends MintTransaction {
  gasLimit: bigint;
  fees: TransactionFees;
  /** Whether some node may have it: then it can be mined as long as its nonce is not used. */
  mayBeTaken: boolean;
}

/** What becomes of a mint, for whoever waits: the hash of the transaction that made the token. */
export interface Outcome {
  promise: Promise<string>;
  resolve(hash: string): void;
  reject(error: Error): void;
}

/** One token on its way, from the lane's knowing of it until it is mined or failed. */
export interface Mint {
  issuance: Issuance;
  /** The lane's order: of lower ones first. */
  order: number;
  /** Whether an earlier run of the service began it: nobody waits for an answer, and nothing but the chain itself may end it. */
  isRecovered: boolean;
  /** The oldest first. */
  transactions: SignedMint[];
  /** How often a node would not have it for a reason that may pass. */
  refusals: number;
  /** How often its gas was estimated again. */
  estimates: number;
  isSettled: boolean;
  /** Whether the journal says that a node took it. */
  isNoted: boolean;
  outcome: Outcome;
}

/** A mint under a nonce. */
export interface Flight {
  mint: Mint;
  nonce: number;
  /** The newest replaces the others. */
  versions: [SignedMint, ...SignedMint[]];
  /** When a node took the newest, by `performance.now()`. */
  sentAt: number;
  /** Since when its nonce is used, without a receipt of any version. */
  missingSince: number | undefined;
  /** How often in a row it was not taken. */
  attempts: number;
  /** How often it was replaced for not being mined in time. */
  replacements: number;
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
export function newFlight(mint: Mint, versions: Flight['versions']): Flight {
  const [{ nonce }] = versions;
  return {
    mint,
    nonce,
    versions,
    sentAt: performance.now(),
    missingSince: undefined,
    attempts: 0,
    replacements: 0,
  };
}

/** A mint that sends nothing for a while. */
export interface Parked {
  mint: Mint;
  /** It is taken up again then, by `performance.now()`. */
  until: number;
}

/** A mint that is to fail as soon as none of its transactions can be mined any more. */
export interface Doomed {
  mint: Mint;
  failure: Failure;
  error: Error;
}

/** The version of a flight that counts. */
export function newestOf(flight: Flight): SignedMint {
  return flight.versions.at(-1) ?? flight.versions[0];
}

/** Whether one of the transactions may be mined yet, when the wallet's transactions below `used` are. */
export function canStillBeMined(transactions: readonly SignedMint[], used: number): boolean {
  return transactions.some(({ nonce, mayBeTaken }) => mayBeTaken && nonce >= used);
}
