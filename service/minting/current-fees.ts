import type { TransactionFees } from '../chain/fees';

/** The fees of the next transactions, read once for all of those that are signed within a while. */
export interface CurrentFees {
  read(): Promise<TransactionFees>;
  /** They were not enough: the next are read anew. */
  forget(): void;
}

/** Keeps what `read` gives for some milliseconds. What fails is not kept. */
export function createCurrentFees(read: () => Promise<TransactionFees>, keepMs: number): CurrentFees {
  let kept: { fees: Promise<TransactionFees>; at: number } | undefined;
  return {
    read() {
      if (kept !== undefined && performance.now() - kept.at < keepMs) return kept.fees;
      const reading = { fees: read(), at: performance.now() };
      kept = reading;
      reading.fees.catch(() => {
        if (kept === reading) kept = undefined;
      });
      return reading.fees;
    },
    forget() {
      kept = undefined;
    },
  };
}
