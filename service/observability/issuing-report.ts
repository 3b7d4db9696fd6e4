import type { ErrorCode } from '../base/errors';
import type { Time } from '../base/time';
import type { Logger } from '../base/logger';
import { shared } from '../base/shared-answers';
import type { NodeReport } from '../chain/node-states';
import { highestGasPrice, type TransactionFees } from '../chain/transactions';
import type { MintFigures } from '../journal/read-issuances';
import type { SignerReport } from '../keys/signer-state';
import { DOCUMENTED_GAS_LIMIT } from '../registry/simulate-mint';

/** The state of issuing. */
export interface IssuingReport {
  /**
   * Numbers of mints by state, in all processes that share the database, and the last mint that failed in
   * this process. Undefined while the database cannot be asked.
   */
  mints: MintReport | undefined;
  /** Documents that wait for a signing thread, busy threads, and all threads. */
  signing: { waiting: number; busy: number; threads: number };
  /** The states of the nodes; undefined if there is only one. */
  nodes?: readonly NodeReport[] | undefined;
  /** The states of the remote signers; empty if all keys are in this process. */
  signers: readonly SignerReport[];
  /** Undefined until it was first read. */
  wallet: WalletReport | undefined;
}

/** Unfinished mints. */
export interface MintReport extends Omit<MintFigures, 'oldestAddedAt'> {
  /** Age in seconds of the oldest mint that is neither mined nor failed. Undefined if there is none. */
  oldestSeconds: number | undefined;
  lastFailure: MintFailure | undefined;
}

/** The code of a mint's error, and its time in epoch milliseconds. */
export interface MintFailure {
  code: ErrorCode;
  at: number;
}

/** Makes the report of mints from their figures. */
export function mintReport(
  { oldestAddedAt, ...counts }: MintFigures,
  lastFailure: MintFailure | undefined,
  now: number,
): MintReport {
  // The process that added the oldest mint may have a clock that is ahead.
  const oldestSeconds =
    oldestAddedAt === undefined ? undefined : Math.max(0, Math.floor((now - oldestAddedAt) / 1000));
  return { ...counts, oldestSeconds, lastFailure };
}

/** The gas limit of a mint without a remark: a node's estimate or, before the first one, as documented. */
export interface MintGas {
  gasOfMint: number;
  isGasEstimated: boolean;
}

/** What a wallet can pay for. */
export interface WalletFunds extends MintGas {
  balanceWei: bigint;
  /** Undefined where gas is free. */
  mintsAffordable: number | undefined;
}

/** The questions about a wallet that a node answers. */
export interface WalletQuestions {
  readBalance: () => Promise<bigint>;
  /** Reads the fees of the next mint. */
  readFees: () => Promise<TransactionFees>;
  estimateGas: () => Promise<bigint>;
}

/**
 * @param gas is used if the estimate fails, as while the registry is paused.
 * @returns `costWei`: the maximum cost of a mint, which a node requires, not its actual cost.
 */
export async function readFunds(
  { readBalance, readFees, estimateGas }: WalletQuestions,
  gas: MintGas = { gasOfMint: Number(DOCUMENTED_GAS_LIMIT), isGasEstimated: false },
): Promise<{ costWei: bigint; funds: WalletFunds }> {
  const estimating = estimateGas().catch(() => undefined);
  const [balanceWei, fees, estimate] = await Promise.all([readBalance(), readFees(), estimating]);
  const used = estimate === undefined ? gas : { gasOfMint: Number(estimate), isGasEstimated: true };
  const costWei = BigInt(used.gasOfMint) * highestGasPrice(fees);
  const mintsAffordable = costWei === 0n ? undefined : Number(balanceWei / costWei);
  return { costWei, funds: { balanceWei, mintsAffordable, ...used } };
}

/** The wallet that mints. */
export interface WalletReport extends WalletFunds {
  /** Checksummed. */
  address: string;
  /** Epoch milliseconds. */
  readAt: number;
}

/** Maximum age of a reading that is returned. */
const LONGEST_KEPT_MS = 300_000;

/**
 * Returns a function that gives the last reading at once, and starts a new one in the background if that is
 * old. A node that hangs does not delay the caller. It gives undefined if nothing was read within five
 * minutes.
 *
 * @param wallet `keepMs`: milliseconds for which a reading is used before the next one.
 */
export function createWalletReading(
  wallet: WalletQuestions & { address: string; keepMs: number; time: Time; logger: Logger },
): () => Promise<WalletReport | undefined> {
  const { address, keepMs, time, logger } = wallet;
  let gas: MintGas | undefined;
  async function read(): Promise<WalletReport> {
    const { funds } = await readFunds(wallet, gas).catch((error: unknown) => {
      logger.debug({ error }, "the wallet's balance cannot be read");
      throw error;
    });
    gas = funds;
    return { address, ...funds, readAt: time.now() };
  }
  const reading = shared(read, { time, leastMs: keepMs, keptMs: LONGEST_KEPT_MS });
  return () => reading(0);
}
