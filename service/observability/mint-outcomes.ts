import type { Clock } from '../base/clock';
import type { LastFailure } from './issuing-report';
import type { Metrics } from './metrics';

/** Counts the outcomes that the mint queue reports, and remembers the last failure and recent mints. */
export interface MintOutcomes {
  mined(tokenId: string, block: number): void;
  failed(code: string): void;
  reorganised(mints: number): void;
  lastFailure(): LastFailure | undefined;
  /** The blocks of mints by token id. The check that looks for their events removes them. */
  readonly recent: Map<string, number>;
}

/** The check of all mints finds those beyond this number, a minute later. */
const MOST_RECENT = 10_000;

/** Create it before the mint queue, which reports to it. */
export function createMintOutcomes(metrics: Metrics, clock: Clock): MintOutcomes {
  let last: LastFailure | undefined;
  const recent = new Map<string, number>();
  return {
    recent,
    mined(tokenId, block) {
      if (recent.size < MOST_RECENT) recent.set(tokenId, block);
    },
    failed(code) {
      metrics.mintFailed(code);
      last = { code, at: clock.now() };
    },
    reorganised: (mints) => metrics.mintsReorganised(mints),
    lastFailure: () => last,
  };
}
