import type { MintFigures } from '../journal/read-issuances';
import type { Clock } from '../base/clock';
import { answerInTime } from '../base/shared-answers';
import type { WalletFigures } from './wallet-reading';

/** The state of issuing. */
export interface IssuingReport {
  /** Counts all processes that share the database. Undefined while the database cannot be asked. */
  mints: MintsReport | undefined;
  signing: SigningFigures;
  /** Undefined until it was first read. */
  wallet: WalletFigures | undefined;
}

/** Numbers of mints by state, and the last mint that failed in this process. */
export interface MintsReport extends Pick<MintFigures, 'waiting' | 'inFlight' | 'mined'> {
  /** Age of the oldest mint that is neither mined nor failed, in seconds. Undefined if there is none. */
  oldestSeconds: number | undefined;
  lastFailure: LastFailure | undefined;
}

/** The last mint that failed in this process. */
export interface LastFailure {
  code: string;
  /** Epoch milliseconds. */
  at: number;
}

/** Documents that wait for a signing thread, busy threads, and all threads. */
export interface SigningFigures {
  waiting: number;
  busy: number;
  threads: number;
}

/** Sources of the report's figures. */
export interface IssuingSources {
  mints: () => Promise<MintFigures>;
  lastFailure: () => LastFailure | undefined;
  signing: () => SigningFigures;
  wallet: () => WalletFigures | undefined;
  clock: Clock;
}

/**
 * Returns a function that creates the report. It takes at most the milliseconds given, even if a source
 * hangs.
 */
export function createIssuingReport(sources: IssuingSources): (withinMs: number) => Promise<IssuingReport> {
  const { lastFailure, signing, wallet, clock } = sources;
  const askForMints = answerInTime(sources.mints);
  return async (withinMs) => {
    const figures = await askForMints(withinMs);
    return {
      mints: figures && { ...mintsReportOf(figures, clock.now()), lastFailure: lastFailure() },
      signing: signing(),
      wallet: wallet(),
    };
  };
}

/** The age is at least 0: the process that added the oldest mint may have a clock that is ahead. */
function mintsReportOf(
  { oldestAddedAt, ...counts }: MintFigures,
  now: number,
): Omit<MintsReport, 'lastFailure'> {
  const oldestSeconds =
    oldestAddedAt === undefined ? undefined : Math.max(0, Math.floor((now - oldestAddedAt) / 1000));
  return { ...counts, oldestSeconds };
}
