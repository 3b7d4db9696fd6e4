import type { Lifecycle } from '../base/lifecycle';
import type { Clock, Time } from '../base/time';
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
  mints:
    | (Omit<MintFigures, 'oldestAddedAt'> & {
        /** Age in seconds of the oldest mint that is neither mined nor failed. Undefined if there is none. */
        oldestSeconds: number | undefined;
        lastFailure: ReturnType<MintOutcomes['lastFailure']>;
      })
    | undefined;
  /** Documents that wait for a signing thread, busy threads, and all threads. */
  signing: { waiting: number; busy: number; threads: number };
  /** The states of the nodes; undefined if there is only one. */
  nodes?: readonly NodeReport[] | undefined;
  /** The states of the remote signers; empty if all keys are in this process. */
  signers: readonly SignerReport[];
  /** Undefined until it was first read. */
  wallet: Awaited<ReturnType<ReturnType<typeof createWalletReading>>>;
}

/**
 * Returns a function that creates the report. It takes at most the milliseconds given, even if a source
 * hangs.
 */
export function createIssuingReport(sources: {
  mints: () => Promise<MintFigures>;
  lastFailure: MintOutcomes['lastFailure'];
  signing: () => IssuingReport['signing'];
  nodes?: (() => IssuingReport['nodes']) | undefined;
  signers: () => readonly SignerReport[];
  wallet: () => Promise<IssuingReport['wallet']>;
  time: Time;
}): (withinMs: number) => Promise<IssuingReport> {
  const { lastFailure, signing, wallet, time } = sources;
  const readMints = shared(sources.mints, { time });
  return async (withinMs) => {
    const [figures, walletFigures] = await Promise.all([readMints(withinMs), wallet()]);
    const own = {
      signing: signing(),
      nodes: sources.nodes?.(),
      signers: sources.signers(),
      wallet: walletFigures,
    };
    if (figures === undefined) return { mints: undefined, ...own };
    const { oldestAddedAt, ...counts } = figures;
    // The process that added the oldest mint may have a clock that is ahead.
    const oldestSeconds =
      oldestAddedAt === undefined ? undefined : Math.max(0, Math.floor((time.now() - oldestAddedAt) / 1000));
    const mints = { ...counts, oldestSeconds, lastFailure: lastFailure() };
    return { mints, ...own };
  };
}

/** The gas limit of a mint without a remark: a node's estimate or, before the first one, as documented. */
export interface MintGas {
  gasOfMint: bigint;
  isGasEstimated: boolean;
}

/** Returns a function that gives the last estimate if another fails, as while the registry is paused. */
export function createGasReading(estimate: () => Promise<bigint>): () => Promise<MintGas> {
  let last: MintGas = { gasOfMint: DOCUMENTED_GAS_LIMIT, isGasEstimated: false };
  return async () => {
    const gasOfMint = await estimate().catch(() => undefined);
    if (gasOfMint !== undefined) last = { gasOfMint, isGasEstimated: true };
    return last;
  };
}

/** Maximum age of a reading that is returned. */
const LONGEST_KEPT_MS = 300_000;

/**
 * Returns a function that gives the last reading at once, and starts a new one in the background if that is
 * old. A node that hangs does not delay the caller. It gives undefined if nothing was read within five
 * minutes.
 */
export function createWalletReading(reading: {
  /** Checksummed. */
  address: string;
  readBalance: () => Promise<bigint>;
  /** Reads the fees of the next mint. */
  readFees: () => Promise<TransactionFees>;
  readGas: () => Promise<MintGas>;
  /** Milliseconds for which a reading is used before the next one. */
  keepMs: number;
  time: Time;
  logger: Logger;
}) {
  const { address, readBalance, readFees, readGas, keepMs, time, logger } = reading;
  async function read() {
    try {
      const [balanceWei, fees, gas] = await Promise.all([readBalance(), readFees(), readGas()]);
      // A node requires the maximum cost of a mint, not its actual cost.
      const cost = gas.gasOfMint * highestGasPrice(fees);
      // Undefined where gas is free.
      const mintsAffordable = cost === 0n ? undefined : Number(balanceWei / cost);
      return { address, balanceWei, mintsAffordable, ...gas, readAt: time.now() };
    } catch (error) {
      logger.debug({ error }, "the wallet's balance cannot be read");
      throw error;
    }
  }
  const wallet = shared(read, { time, leastMs: keepMs, keptMs: LONGEST_KEPT_MS });
  return () => wallet(0);
}

/** The check of all mints finds those beyond this number, a minute later. */
const MOST_RECENT = 10_000;

/** The last outcomes of mints. */
export type MintOutcomes = ReturnType<typeof createMintOutcomes>;

/** Remembers the last failure and recent mints. Create it before the mint queue. */
export function createMintOutcomes(lifecycle: Lifecycle, clock: Clock) {
  /** `at`: epoch milliseconds. */
  let last: { code: string; at: number } | undefined;
  /** The blocks of mints by token id. The check that looks for their events removes them. */
  const recent = new Map<string, number>();
  lifecycle.on('mined', (tokenId, block) => {
    if (recent.size < MOST_RECENT) recent.set(tokenId, block);
  });
  lifecycle.on('mint failed', (code) => (last = { code, at: clock.now() }));
  return { recent, lastFailure: () => last };
}
