import type { Clock } from '../base/clock';
import type { Metrics } from './metrics';

/** The last mint that failed in this process. */
export interface LastFailure {
  code: string;
  /** Epoch milliseconds. */
  at: number;
}

/** Counts the outcomes that the mint queue reports, and remembers the last failure. */
export interface MintOutcomes {
  failed(code: string): void;
  reorganised(mints: number): void;
  lastFailure(): LastFailure | undefined;
}

/** Create it before the mint queue, which reports to it. */
export function createMintOutcomes(metrics: Metrics, clock: Clock): MintOutcomes {
  let last: LastFailure | undefined;
  return {
    failed(code) {
      metrics.mintFailed(code);
      last = { code, at: clock.now() };
    },
    reorganised: (mints) => metrics.mintsReorganised(mints),
    lastFailure: () => last,
  };
}
