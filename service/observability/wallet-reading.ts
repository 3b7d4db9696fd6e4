import { highestGasPrice, type TransactionFees } from '../chain/fees';
import type { Clock } from '../base/clock';
import type { Logger } from '../base/logger';

/** The wallet's balance, and how many mints it pays for. */
export interface WalletFigures {
  /** Checksummed. */
  address: string;
  balanceWei: bigint;
  /** Number of mints that the balance covers at current fees. Undefined where gas is free. */
  mintsAffordable: number | undefined;
  /** Epoch milliseconds. */
  readAt: number;
}

/** Sources of the figures. */
export interface WalletReading {
  address: string;
  readBalance: () => Promise<bigint>;
  /** Reads the fees of the next mint. */
  readFees: () => Promise<TransactionFees>;
  /** Milliseconds for which a reading is used before the next one. */
  keepMs: number;
  clock: Clock;
  logger: Logger;
}

/** Gas limit of a mint without a remark: 297,000 plus the margin of 15% (transaction-terms.ts). */
const GAS_OF_A_MINT = 350_000n;
/** Pause after a failed reading, so that not every request asks a node that is down. */
const RETRY_AFTER_MS = 10_000;
/** Maximum age of a reading that is returned. */
const LONGEST_KEPT_MS = 300_000;

/**
 * Returns a function that gives the last reading at once, and starts a new one in the background if that is
 * old. A node that hangs does not delay the caller. It returns undefined if nothing was read within five
 * minutes. One reading runs at a time.
 */
export function createWalletReading(reading: WalletReading): () => WalletFigures | undefined {
  const { clock, keepMs } = reading;
  let last: WalletFigures | undefined;
  let isUnderWay = false;
  let nextAt = -Infinity;

  async function read(): Promise<void> {
    isUnderWay = true;
    try {
      last = await figuresOf(reading);
      nextAt = last.readAt + keepMs;
    } catch (error) {
      nextAt = clock.now() + Math.min(RETRY_AFTER_MS, keepMs);
      reading.logger.debug({ error }, "the wallet's balance cannot be read");
    } finally {
      isUnderWay = false;
    }
  }

  return () => {
    if (!isUnderWay && clock.now() >= nextAt) void read();
    return last !== undefined && clock.now() - last.readAt <= LONGEST_KEPT_MS ? last : undefined;
  };
}

async function figuresOf({ address, readBalance, readFees, clock }: WalletReading): Promise<WalletFigures> {
  const [balanceWei, fees] = await Promise.all([readBalance(), readFees()]);
  // Nodes require the maximum cost of a transaction, not its actual cost.
  const cost = GAS_OF_A_MINT * highestGasPrice(fees);
  const mintsAffordable = cost === 0n ? undefined : Number(balanceWei / cost);
  return { address, balanceWei, mintsAffordable, readAt: clock.now() };
}
