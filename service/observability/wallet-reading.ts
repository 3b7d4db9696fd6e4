import { highestGasPrice, type TransactionFees } from '../chain/fees';
import type { Clock } from '../base/clock';
import type { Logger } from '../base/logger';

/** What the wallet has, and what that is enough for. */
export interface WalletFigures {
  /** With its checksum. */
  address: string;
  balanceWei: bigint;
  /** Mints that it pays for at present fees; undefined where gas is free. */
  mintsAffordable: number | undefined;
  /** Epoch milliseconds. */
  readAt: number;
}

/** Where the figures come from. */
export interface WalletReading {
  address: string;
  readBalance: () => Promise<bigint>;
  /** Fees of the next mint. */
  readFees: () => Promise<TransactionFees>;
  /** Milliseconds after which what was read is old. */
  keepMs: number;
  clock: Clock;
  logger: Logger;
}

/** Gas limit of a mint without a remark: 297,000 and the margin of 15 in a hundred (transaction-terms.ts). */
const GAS_OF_A_MINT = 350_000n;
/** After a reading that failed: a node that is away is not asked by each who looks. */
const RETRY_AFTER_MS = 10_000;
/** What is older says nothing any more. */
const LONGEST_KEPT_MS = 300_000;

/**
 * Gives what was read last, at once, and reads anew in the background when that is old: a node that hangs
 * holds nobody up. Undefined when nothing was read within five minutes. One reading is under way at a time.
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
  // Nodes ask for the most that a transaction may cost, not for what it will.
  const cost = GAS_OF_A_MINT * highestGasPrice(fees);
  const mintsAffordable = cost === 0n ? undefined : Number(balanceWei / cost);
  return { address, balanceWei, mintsAffordable, readAt: clock.now() };
}
